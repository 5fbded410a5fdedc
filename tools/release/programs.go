package release

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// platform is where a program runs.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "-" + p.arch }

// linux are the platforms of cluster nodes, and of the images.
var linux = []platform{{"linux", "amd64"}, {"linux", "arm64"}}

// workstations are where people run the other programs.
var workstations = slices.Concat(linux, []platform{{"darwin", "amd64"}, {"darwin", "arm64"}})

// notReleased are programs of cmd/ for tests.
var notReleased = []string{"openstack-sim"}

const driver = "cinder-csi-driver"

// tags are the build tags of the programs, as TAGS of the Makefile, which says what they are for.
const tags = "grpcnotrace"

// program is one released file: a program for a platform.
type program struct {
	name string
	platform
}

// file is the name of the program in the release.
func (p program) file() string { return "bin/" + p.name + "-" + p.String() }

// programs lists what cmd/ has for each platform. The driver needs Linux.
func programs(root string) ([]program, error) {
	entries, err := os.ReadDir(filepath.Join(root, "cmd"))
	if err != nil {
		return nil, err
	}
	var all []program
	for _, entry := range entries {
		name, platforms := entry.Name(), workstations
		if slices.Contains(notReleased, name) {
			continue
		}
		if name == driver {
			platforms = linux
		}
		for _, p := range platforms {
			all = append(all, program{name, p})
		}
	}
	return all, nil
}

func (r *release) buildPrograms(ctx context.Context) error {
	all, err := programs(".")
	if err != nil {
		return err
	}
	for _, p := range all {
		env := []string{"CGO_ENABLED=0", "GOOS=" + p.os, "GOARCH=" + p.arch, "GOFLAGS=-mod=readonly", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT="}
		// buildvcs=true fails if git cannot name the commit; auto would leave it out.
		_, err := run(ctx, "", env, "go", "build", "-trimpath", "-buildvcs=true", "-tags", tags, "-ldflags", r.linkerFlags(), "-o", r.path(p.file()), "./cmd/"+p.name)
		if err != nil {
			return err
		}
		if err := os.Chmod(r.path(p.file()), 0o755); err != nil {
			return err
		}
		fmt.Fprintf(r.Report, "%s %s\n", p.file(), strings.TrimSpace(r.sizeOf(p.file())))
	}
	return nil
}

func (r *release) sizeOf(name string) string {
	info, err := os.Stat(r.path(name))
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%.1f MiB", float64(info.Size())/(1<<20))
}

// linkerFlags put the version into a program, and the address of the pages that its messages name.
func (r *release) linkerFlags() string {
	flags := "-s -w -X main.version=" + r.Version
	if r.Home != "" {
		flags += " -X " + project + "/internal/pages.base=" + r.Home + "/blob/" + r.Version
	}
	return flags
}
