package ociimage

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Debian fetches packages from the machine's own apt sources, checked by apt's signatures, into a directory. The machine's list of
// installed packages is neither used nor changed, and root is not needed.
type Debian struct {
	Dir string // keeps package lists and packages between runs
}

// Package is one package file.
type Package struct {
	Name    string
	Control []byte   // its control file, as /var/lib/dpkg/status.d of a slim image has it
	Files   []string // its names in the tree it was added to
	archive string
}

// Fetch downloads the packages and everything they depend on, but not what they recommend.
func (d Debian) Fetch(ctx context.Context, names []string) ([]Package, error) {
	for _, dir := range []string{"archives/partial", "none/partial", "state/lists/partial"} {
		dir = filepath.Join(d.Dir, filepath.FromSlash(dir))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	// No package is installed, says this file: so apt finds the whole closure.
	if err := os.WriteFile(filepath.Join(d.Dir, "state", "status"), nil, 0o644); err != nil {
		return nil, err
	}
	if _, err := d.apt(ctx, "update"); err != nil {
		return nil, err
	}
	install := append([]string{"--no-install-recommends", "install"}, names...)
	// Packages that are already here are not printed, so here is where none is.
	uris, err := d.apt(ctx, append([]string{"-o", "Dir::Cache::Archives=none/", "--print-uris"}, install...)...)
	if err != nil {
		return nil, err
	}
	if _, err := d.apt(ctx, append([]string{"--download-only"}, install...)...); err != nil {
		return nil, err
	}
	return d.packages(ctx, string(uris))
}

// packages reads `apt-get --print-uris`, whose lines are 'URI' FILE SIZE HASH.
func (d Debian) packages(ctx context.Context, uris string) ([]Package, error) {
	var all []Package
	for line := range strings.Lines(uris) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			return nil, fmt.Errorf("apt-get --print-uris printed %q", line)
		}
		archive := filepath.Join(d.Dir, "archives", fields[1])
		control, err := output(ctx, "dpkg-deb", "--field", archive)
		if err != nil {
			return nil, err
		}
		name, _, _ := strings.Cut(fields[1], "_")
		all = append(all, Package{Name: name, Control: control, archive: archive})
	}
	slices.SortFunc(all, func(a, b Package) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

func (d Debian) apt(ctx context.Context, args ...string) ([]byte, error) {
	dir, err := filepath.Abs(d.Dir)
	if err != nil {
		return nil, err
	}
	return output(ctx, "apt-get", append([]string{
		"-qq", "-y",
		"-o", "Dir::State=" + filepath.Join(dir, "state"),
		"-o", "Dir::State::Status=" + filepath.Join(dir, "state", "status"),
		"-o", "Dir::Cache=" + dir,
		"-o", "APT::Sandbox::User=",
		"-o", "Debug::NoLocking=true",
		"-o", "Acquire::Languages=none",
	}, args...)...)
}

// AddPackage adds a package's files to the tree.
func (t Tree) AddPackage(ctx context.Context, p *Package) error {
	content, err := output(ctx, "dpkg-deb", "--fsys-tarfile", p.archive)
	if err != nil {
		return err
	}
	p.Files, err = t.AddTar(bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("package %s: %w", p.Name, err)
	}
	return nil
}

func output(ctx context.Context, name string, args ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(stderr.String()))
	}
	return stdout.Bytes(), nil
}
