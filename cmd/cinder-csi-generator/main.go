// Command cinder-csi-generator inspects an OpenStack cloud and generates the manifests of the Cinder CSI driver for it.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/cinder-csi/cinder-csi/generator/cli"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

// version is set by the linker.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, world(), os.Args[1:])
	stop()
	os.Exit(code)
}

func world() cli.World {
	return cli.World{
		Stdin:    os.Stdin,
		Stdout:   os.Stdout,
		Stderr:   os.Stderr,
		Terminal: terminal(os.Stderr),
		Env:      os.Getenv,
		Open:     func(name string) (io.ReadCloser, error) { return os.Open(name) },
		Version:  version,
		Connect:  cloud.Connect,
		Simulate: simulate,
	}
}

// terminal reports whether a stream is a terminal that can overwrite a line, outside CI.
func terminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb" && os.Getenv("CI") == ""
}

// simulate logs in to a simulated cloud in this process, as an ordinary member of its project. The cloud has fixed IDs and one fixed address.
func simulate(ctx context.Context) (*cloud.Cloud, error) {
	const address, user = "http://openstack.simulated", "demo"
	config := openstacksim.Default()
	settings := cloud.Settings{
		Name:              "simulated",
		AuthURL:           address + "/identity/v3",
		Username:          user,
		UserDomainName:    "Default",
		ProjectName:       "demo",
		ProjectDomainName: "Default",
		Region:            config.Region,
	}
	for _, u := range config.Users {
		if u.Name == user {
			settings.Password = cloud.Secret(u.Password)
		}
	}
	return cloud.Connect(ctx, settings, cloud.Options{Transport: memnet.Transport(openstacksim.New(config).Handler())})
}
