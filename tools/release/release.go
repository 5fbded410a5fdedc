// Package release builds everything that a version of the project consists of, and publishes nothing.
//
// The same commit, version, Go and Debian packages give the same bytes, in any directory and time zone. Every time in a file is the
// time of the commit or SOURCE_DATE_EPOCH. Nothing is signed: the provenance file says so.
package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/cinder-csi/cinder-csi/tools/image"
)

// project is the name of the project: the Go module, and the path of its repository.
const project = "github.com/cinder-csi/cinder-csi"

// Options say what to build. The process runs at the top of the repository.
type Options struct {
	Version string // vMAJOR.MINOR.PATCH; "" is the version of the chart
	Output  string // the directory to write; an earlier release in it is replaced
	Cache   string // directory that keeps downloaded Debian packages
	Sources string // deb822 file in place of this machine's apt sources
	Builder string // address of the pipeline that builds; "" is a person's machine
	Home    string // address of the repository of the commit; "" names none
	Report  io.Writer
}

// release is a release in work.
type release struct {
	Options
	dir       string // where files are written before Output is replaced
	commit    string
	time      time.Time
	goVersion string            // of the programs, such as go1.26.0
	licences  map[string]string // of Go modules, as an SPDX expression
	modules   map[string]string // linked into a program: version by path
	debian    []image.Package
}

// Build writes a release into the output directory. On failure the directory stays as it was.
func Build(ctx context.Context, o Options) error {
	r, err := prepare(ctx, o)
	if err != nil {
		return err
	}
	defer os.RemoveAll(r.dir)
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"programs", r.buildPrograms},
		{"SBOMs of the programs", r.describePrograms},
		{"images", r.buildImages},
		{"chart", r.packageChart},
		{"manual pages and completions", r.writeManuals},
		{"licences", r.copyLicences},
		{"archives", r.packArchives},
		{"provenance", r.writeProvenance},
		{"checksums", r.writeChecksums},
	} {
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	if err := errors.Join(os.RemoveAll(r.Output), os.Rename(r.dir, r.Output)); err != nil {
		return err
	}
	fmt.Fprintf(r.Report, "%s: release %s of commit %s, not signed, not published\n", filepath.ToSlash(r.Output), r.Version, r.commit)
	return nil
}

// prepare checks the repository and makes an empty directory beside the output.
func prepare(ctx context.Context, o Options) (*release, error) {
	if err := replaceable(o.Output); err != nil {
		return nil, err
	}
	version, err := checkVersion(".", o.Version)
	if err != nil {
		return nil, err
	}
	r := &release{Options: o, dir: o.Output + ".new", modules: map[string]string{}}
	r.Version = version
	if r.commit, r.time, err = source(ctx, "."); err != nil {
		return nil, err
	}
	if r.time, err = epoch(os.Getenv("SOURCE_DATE_EPOCH"), r.time); err != nil {
		return nil, err
	}
	if r.licences, err = readLicences("THIRD_PARTY.md"); err != nil {
		return nil, err
	}
	return r, errors.Join(os.RemoveAll(r.dir), os.MkdirAll(r.dir, 0o755))
}

// replaceable refuses a directory that holds something else than a release.
func replaceable(output string) error {
	entries, err := os.ReadDir(output)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(output, checksums)); err != nil {
		return fmt.Errorf("%s is not empty and has no %s, so it is no release; remove it or name another directory", output, checksums)
	}
	return nil
}

// write writes a file of the release, readable for everybody whatever the umask is.
func (r *release) write(name string, content []byte, mode fs.FileMode) error {
	full := filepath.Join(r.dir, filepath.FromSlash(name))
	return errors.Join(os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, content, mode), os.Chmod(full, mode))
}

func (r *release) path(name string) string { return filepath.Join(r.dir, filepath.FromSlash(name)) }
