package image

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Debian downloads packages from this machine's apt sources into a directory. apt checks their signatures. It neither reads nor changes
// the list of packages that are installed on this machine, and it does not need root.
type Debian struct {
	Dir          string // keeps package lists and packages between runs
	Architecture string // as Debian names it, which is Go's name for amd64 and arm64; "" is this machine's
	Sources      string // deb822 file in place of this machine's apt sources (sources.list(5)); "" is this machine's
}

// For gives the source of the packages of another architecture, in a directory of its own.
func (d Debian) For(architecture string) Debian {
	return Debian{Dir: filepath.Join(d.Dir, architecture), Architecture: architecture, Sources: d.Sources}
}

// Package is a Debian package that Fetch downloaded.
type Package struct {
	Name         string
	Version      string
	Architecture string   // all, or an architecture of Debian
	SHA256       string   // of the downloaded file, in hexadecimal
	Control      []byte   // its control file, which the image keeps in /var/lib/dpkg/status.d
	Files        []string // its names in the tree it was added to
	archive      string
}

// Fetch downloads the packages and their dependencies. Recommended packages are left out.
func (d Debian) Fetch(ctx context.Context, names []string) ([]Package, error) {
	for _, dir := range []string{"archives/partial", "none/partial", "state/lists/partial"} {
		dir = filepath.Join(d.Dir, filepath.FromSlash(dir))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	// An empty status file says that no package is installed, so apt lists every dependency.
	if err := os.WriteFile(filepath.Join(d.Dir, "state", "status"), nil, 0o644); err != nil {
		return nil, err
	}
	if _, err := d.apt(ctx, "update"); err != nil {
		return nil, err
	}
	install := append([]string{"--no-install-recommends", "install"}, names...)
	// apt does not print packages that it has already downloaded, so this call looks in an empty directory.
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
		p, err := readPackage(ctx, filepath.Join(d.Dir, "archives", fields[1]))
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Package) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

func readPackage(ctx context.Context, archive string) (Package, error) {
	control, err := output(ctx, "dpkg-deb", "--field", archive)
	if err != nil {
		return Package{}, err
	}
	content, err := os.ReadFile(archive)
	if err != nil {
		return Package{}, err
	}
	p := Package{
		Name: controlField(control, "Package"), Version: controlField(control, "Version"), Architecture: controlField(control, "Architecture"),
		SHA256: fmt.Sprintf("%x", sha256.Sum256(content)), Control: control, archive: archive,
	}
	if p.Name == "" || p.Version == "" {
		return Package{}, fmt.Errorf("the control file of %s names no package or no version", archive)
	}
	return p, nil
}

// controlField reads a field of one line (deb-control(5)), "" if it is missing.
func controlField(control []byte, name string) string {
	for line := range strings.Lines(string(control)) {
		if value, is := strings.CutPrefix(line, name+":"); is {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (d Debian) apt(ctx context.Context, args ...string) ([]byte, error) {
	dir, err := filepath.Abs(d.Dir)
	if err != nil {
		return nil, err
	}
	options := []string{
		"-qq", "-y",
		"-o", "Dir::State=" + filepath.Join(dir, "state"),
		"-o", "Dir::State::Status=" + filepath.Join(dir, "state", "status"),
		"-o", "Dir::Cache=" + dir,
		"-o", "APT::Sandbox::User=",
		"-o", "Debug::NoLocking=true",
		"-o", "Acquire::Languages=none",
	}
	if d.Architecture != "" {
		// Without Architectures, apt also reads the lists of this machine's architecture.
		options = append(options, "-o", "APT::Architecture="+d.Architecture, "-o", "APT::Architectures="+d.Architecture)
	}
	if d.Sources != "" {
		only, err := onlySources(d.Sources)
		if err != nil {
			return nil, err
		}
		options = append(options, only...)
	}
	return output(ctx, "apt-get", append(options, args...)...)
}

// onlySources are the options that replace the apt sources of this machine by a file. A source that cannot be reached is then an error:
// without the option, apt only warns, and later finds no package.
func onlySources(file string) ([]string, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(file); err != nil {
		return nil, fmt.Errorf("apt sources: %w", err)
	}
	if filepath.Ext(file) != ".sources" {
		return nil, fmt.Errorf("apt sources %s: apt reads the deb822 format only from a file that ends in .sources", file)
	}
	return []string{"-o", "Dir::Etc::SourceList=" + file, "-o", "Dir::Etc::SourceParts=/dev/null", "-o", "APT::Update::Error-Mode=any"}, nil
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
