package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"

	"github.com/spf13/pflag"

	"github.com/cinder-csi/cinder-csi/driver"
	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/driver/guestaccess"
)

// guestTokenCommand has flags of its own: it runs in a container that has nothing to do with OpenStack.
const guestTokenCommand = "guest-token"

// guestToken keeps a kubeconfig for the sidecars of a hosted control plane current, until ctx ends.
func guestToken(ctx context.Context, args []string, stderr io.Writer) int {
	o := guestaccess.Options{Log: slog.New(slog.NewTextHandler(stderr, nil))}
	flags := pflag.NewFlagSet("cinder-csi-driver "+guestTokenCommand, pflag.ContinueOnError)
	flags.SetOutput(stderr)
	o.Bind(flags)
	switch err := flags.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		return config.ExitOK
	case err != nil:
		return failed(stderr, err)
	case flags.NArg() > 0:
		return failed(stderr, fmt.Errorf("unexpected argument %q", flags.Arg(0)))
	}
	keeper, err := guestaccess.New(o)
	if err != nil {
		return failed(stderr, err)
	}
	listener, err := net.Listen("tcp", o.HTTPEndpoint)
	if err != nil {
		return failed(stderr, err)
	}
	go func() { _ = driver.ServeHTTP(ctx, listener, healthOf(keeper)) }()
	if err := keeper.Run(ctx); err != nil {
		return failed(stderr, err)
	}
	return config.ExitOK
}

func failed(stderr io.Writer, err error) int {
	fmt.Fprintln(stderr, "cinder-csi-driver "+guestTokenCommand+":", err)
	return config.ExitFailure
}

// healthOf serves /healthz.
func healthOf(keeper *guestaccess.Keeper) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if !keeper.Valid() {
			http.Error(w, "no valid token is written; the log gives the reason", http.StatusServiceUnavailable)
		}
	})
	return mux
}
