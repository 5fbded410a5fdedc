package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
)

// packageChart writes the chart as `helm package` does, with the time of the release instead of the clock.
func (r *release) packageChart(context.Context) error {
	content, name, err := packaged(chartDir, r.time)
	if err != nil {
		return err
	}
	return r.write("chart/"+name, content, 0o644)
}

func packaged(dir string, at time.Time) (content []byte, name string, err error) {
	chart, err := loader.LoadDir(dir)
	if err != nil {
		return nil, "", err
	}
	temporary, err := os.MkdirTemp("", "chart-")
	if err != nil {
		return nil, "", err
	}
	defer os.RemoveAll(temporary)
	saved, err := chartutil.Save(chart, temporary)
	if err != nil {
		return nil, "", fmt.Errorf("package %s: %w", dir, err)
	}
	content, err = os.ReadFile(saved)
	if err != nil {
		return nil, "", err
	}
	content, err = withTime(content, at)
	return content, filepath.Base(saved), err
}

// withTime copies a tar.gz with one time for all of its files. Helm writes the current time and has no option for it.
func withTime(content []byte, at time.Time) ([]byte, error) {
	from, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	var w bytes.Buffer
	compressed := gzip.NewWriter(&w)
	compressed.Extra, compressed.Comment = from.Extra, from.Comment // Helm recognizes its packages by them
	to := tar.NewWriter(compressed)
	for stream := tar.NewReader(from); ; {
		h, err := stream.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		h.ModTime, h.Format = at, tar.FormatUSTAR
		if err := to.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := io.Copy(to, stream); err != nil {
			return nil, err
		}
	}
	err = errors.Join(to.Close(), compressed.Close())
	return w.Bytes(), err
}
