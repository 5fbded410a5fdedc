package driver

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/driver/controller"
	"github.com/cinder-csi/cinder-csi/driver/kube"
)

// claimsOf returns the reader of annotations of claims; nil without --pvc-annotations.
func claimsOf(cfg config.Config, deps Dependencies) (controller.Claims, error) {
	if !cfg.PVCAnnotations {
		return nil, nil
	}
	return kubernetes(cfg, deps, "--pvc-annotations")
}

// startupTaints returns what removes the start-up taints of nodes; nil without --remove-startup-taint.
func startupTaints(cfg config.Config, deps Dependencies, log *slog.Logger) (*kube.StartupTaints, error) {
	if !cfg.StartupTaint {
		return nil, nil
	}
	api, err := kubernetes(cfg, deps, "--remove-startup-taint")
	if err != nil {
		return nil, err
	}
	return &kube.StartupTaints{API: api, Driver: cfg.DriverName, Log: log}, nil
}

func kubernetes(cfg config.Config, deps Dependencies, flag string) (*kube.API, error) {
	api, err := kube.New(kube.Options{Server: cfg.Master, Kubeconfig: cfg.Kubeconfig, Env: deps.Env, Version: deps.Version, Transport: deps.Transport})
	if err != nil {
		return nil, fmt.Errorf("%s needs the Kubernetes API: %w", flag, err)
	}
	return api, nil
}

// LongestHook is how long AwaitDetached waits. After the hook the driver gets SIGTERM, and needs time for its RPCs in progress. So the grace period
// of the pod is 30 seconds longer (manifests/components/drain-hook-node).
const LongestHook = 2 * time.Minute

// AwaitDetached waits as kube.API.AwaitDetached does, with the service account of the pod: for the preStop hook of the node role. It returns
// an error after LongestHook.
func AwaitDetached(ctx context.Context, driverName, node, master string, stderr io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, LongestHook)
	defer cancel()
	api, err := kube.New(kube.Options{Server: master, Env: os.Getenv})
	if err != nil {
		return err
	}
	return api.AwaitDetached(ctx, driverName, node, slog.New(slog.NewTextHandler(stderr, nil)))
}
