package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// cloudName is the entry of the simulated cloud's clouds.yaml that the generator uses: an ordinary project member.
const cloudName = "sim-demo"

func generate(ctx context.Context, bin, dir string, cloud *simulated) error {
	run := func(args ...string) error {
		cmd := exec.CommandContext(ctx, filepath.Join(bin, "cinder-csi-generator"), args...)
		cmd.Env = append(os.Environ(), "OS_CLIENT_CONFIG_FILE="+filepath.Join(cloud.files, "clouds.yaml"))
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("cinder-csi-generator %v: %w", args, err)
		}
		return nil
	}
	heading("2", "The inventory of the cloud: cinder-csi-generator inspect --os-cloud "+cloudName)
	inventory := filepath.Join(dir, "inventory.yaml")
	if err := run("inspect", "--os-cloud", cloudName, "--save", inventory); err != nil {
		return err
	}
	config := filepath.Join("examples", "distribution", "minimal.yaml")
	heading("3", "The decisions and the six bundles")
	if err := run("plan", "--target", "vanilla", "--os-cloud", cloudName, "--config", config); err != nil {
		return err
	}
	fmt.Println()
	for _, target := range []string{"vanilla", "standalone", "hypershift"} {
		for _, format := range []string{"kustomize", "helm"} {
			out := filepath.Join(dir, "bundles", target+"-"+format)
			if err := run("generate", "--os-cloud", cloudName, "--target", target, "--format", format, "--config", config, "--output-dir", out); err != nil {
				return err
			}
			if err := run("validate", out); err != nil {
				return err
			}
		}
	}
	return nil
}
