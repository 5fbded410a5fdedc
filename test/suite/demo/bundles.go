package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// cloudName is the entry of the simulated cloud's clouds.yaml that the generator uses: an ordinary project member.
const cloudName = "sim-demo"

func generate(ctx context.Context, out *screen, bin, dir string, cloud *simulated) error {
	run := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, filepath.Join(bin, "cinder-csi-generator"), args...)
		cmd.Env = append(os.Environ(), "OS_CLIENT_CONFIG_FILE="+filepath.Join(cloud.files, "clouds.yaml"))
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if out.verbose {
			cmd.Stderr = io.MultiWriter(&stderr, os.Stderr)
		}
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("cinder-csi-generator %v: %w\n%s", args, err, stderr.Bytes())
		}
		out.warn(stderr.Bytes())
		return stdout.Bytes(), nil
	}
	out.heading("2", "The inventory of the cloud: cinder-csi-generator inspect --os-cloud "+cloudName)
	inventory := filepath.Join(dir, "inventory.yaml")
	shown, err := run("inspect", "--os-cloud", cloudName, "--save", inventory)
	if err != nil {
		return err
	}
	if out.verbose {
		out.printf("%s", shown)
	} else {
		out.printf("%s", excerpt(string(shown)))
	}
	config := filepath.Join("examples", "distribution", "minimal.yaml")
	plan := []string{"plan", "--target", "vanilla", "--inventory", inventory, "--config", config, "-o"}
	if err := decisions(out, dir, func(form string) ([]byte, error) { return run(append(plan, form)...) }); err != nil {
		return err
	}
	for _, target := range []string{"vanilla", "standalone", "hypershift"} {
		var verified []string
		for _, format := range []string{"kustomize", "helm"} {
			to := filepath.Join(dir, "bundles", target+"-"+format)
			if _, err := run("generate", "--os-cloud", cloudName, "--target", target, "--format", format, "--config", config, "--output-dir", to); err != nil {
				return err
			}
			checked, err := run("validate", to)
			if err != nil {
				return err
			}
			verified = append(verified, format+": "+strings.ReplaceAll(strings.TrimSpace(string(checked)), "\n", ", "))
		}
		out.printf("%-26s %s\n", filepath.Join(dir, "bundles", target+"-*"), strings.Join(verified, "; "))
	}
	out.warnings()
	return nil
}

// excerpt has the zones and the volume types of a printed inventory.
func excerpt(inventory string) string {
	_, rest, _ := strings.Cut(inventory, "\nZONE ")
	rest, _, _ = strings.Cut(rest, "\n\nRESOURCE ")
	return "ZONE " + strings.ReplaceAll(strings.TrimSpace(rest), "\n\n", "\n") + "\n"
}

// decision is a decision of a plan.
type decision struct{ ID, Source, Reason string }

// decisions shows those of the cloud, or all, and writes the page for a colleague.
func decisions(out *screen, dir string, plan func(form string) ([]byte, error)) error {
	out.heading("3", "The decisions, and the six bundles")
	page, err := plan("html")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "plan.html"), page, 0o644)
	}
	if err != nil {
		return err
	}
	if out.verbose {
		all, err := plan("table")
		out.printf("%s\n", all)
		return err
	}
	text, err := plan("json")
	if err != nil {
		return err
	}
	cloud, err := byTheCloud(text)
	for _, d := range cloud {
		out.printf("%-26s %s\n", d.ID, d.Reason)
	}
	return err
}

// byTheCloud are the decisions of a plan that the cloud decided.
func byTheCloud(plan []byte) ([]decision, error) {
	var document struct{ Decisions []decision }
	if err := json.Unmarshal(plan, &document); err != nil {
		return nil, err
	}
	var all []decision
	for _, d := range document.Decisions {
		if d.Source == "inferred" {
			all = append(all, d)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("the cloud decided nothing")
	}
	return all, nil
}
