// Command registrar stands in for the sidecar node-driver-registrar, whose module the Go proxy does not serve. It offers the CSI driver to
// kubelet's plugin watcher (k8s.io/kubelet/pkg/apis/pluginregistration/v1). /healthz reports that it runs. It accepts the flags that the bundle
// gives the real one. When kubelet refuses the driver, it exits, as the real one does.
package main

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

func main() {
	driver := flag.String("csi-address", "/csi/csi.sock", "the driver's socket as this process sees it")
	endpoint := flag.String("kubelet-registration-path", "", "the driver's socket as kubelet sees it")
	directory := flag.String("plugin-registration-path", "/registration", "kubelet's directory of registration sockets")
	health := flag.String("http-endpoint", "", "address that serves /healthz; none when empty")
	flag.Int("v", 0, "ignored")
	flag.String("logging-format", "text", "ignored")
	flag.Parse()
	if err := run(*driver, *endpoint, *directory, *health); err != nil {
		log.Fatal(err)
	}
}

func run(driver, endpoint, directory, health string) error {
	name, err := driverName(driver)
	if err != nil {
		return err
	}
	socket := filepath.Join(directory, name+"-reg.sock")
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	// Without the socket kubelet knows that the driver is gone. Closing the listener removes it.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	failed := make(chan error, 2)
	if health != "" {
		http.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
		go func() { failed <- http.ListenAndServe(health, nil) }()
	}
	server := grpc.NewServer()
	registration.RegisterRegistrationServer(server, registrar{name: name, endpoint: endpoint})
	go func() { failed <- server.Serve(listener) }()
	log.Printf("offers %s on %s", name, socket)
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return listener.Close()
	}
}

// driverName waits for the driver, which may start after this process.
func driverName(socket string) (string, error) {
	client, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return "", err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	answer, err := csi.NewIdentityClient(client).GetPluginInfo(ctx, &csi.GetPluginInfoRequest{}, grpc.WaitForReady(true))
	return answer.GetName(), err
}

type registrar struct {
	registration.UnimplementedRegistrationServer
	name, endpoint string
}

func (r registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.CSIPlugin, Name: r.name, Endpoint: r.endpoint, SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (r registrar) NotifyRegistrationStatus(_ context.Context, status *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if !status.PluginRegistered {
		log.Fatalf("kubelet refuses %s: %s", r.name, status.Error)
	}
	log.Printf("kubelet has registered %s", r.name)
	return &registration.RegistrationStatusResponse{}, nil
}
