// Command livenessprobe stands in for the sidecar of that name, whose module the Go proxy does not serve. /healthz answers 200 while the driver
// answers the CSI call Probe with ready, else 500. The program accepts the flags that the bundle gives the real one.
package main

import (
	"context"
	"flag"
	"log"
	"net/http"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

func main() {
	socket := flag.String("csi-address", "/csi/csi.sock", "the driver's socket")
	address := flag.String("http-endpoint", ":9808", "address that serves /healthz")
	timeout := flag.Duration("probe-timeout", time.Second, "of one Probe")
	flag.Int("v", 0, "ignored")
	flag.String("logging-format", "text", "ignored")
	flag.Parse()
	client, err := grpc.NewClient("unix://"+*socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), *timeout)
		defer cancel()
		answer, err := csi.NewIdentityClient(client).Probe(ctx, &csi.ProbeRequest{})
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		case answer.GetReady() != nil && !answer.GetReady().GetValue():
			http.Error(w, "the driver is not ready", http.StatusInternalServerError)
		}
	})
	log.Fatal(http.ListenAndServe(*address, nil))
}
