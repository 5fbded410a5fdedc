package driver

import (
	"fmt"

	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/driver/controller"
	"github.com/cinder-csi/cinder-csi/driver/kube"
)

// claimsOf returns the reader of annotations of claims; nil without --pvc-annotations.
func claimsOf(cfg config.Config, deps Dependencies) (controller.Claims, error) {
	if !cfg.PVCAnnotations {
		return nil, nil
	}
	api, err := kube.New(kube.Options{Server: cfg.Master, Env: deps.Env, Transport: deps.Transport})
	if err != nil {
		return nil, fmt.Errorf("--pvc-annotations needs the Kubernetes API: %w", err)
	}
	return api, nil
}
