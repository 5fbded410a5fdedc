package publish

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// withConfig is an image whose configuration is not that of a container: a chart's is its Chart.yaml as JSON.
type withConfig struct {
	v1.Image
	config []byte
}

func (w withConfig) RawConfigFile() ([]byte, error) { return w.config, nil }

func (w withConfig) ConfigName() (v1.Hash, error) {
	digest, _, err := v1.SHA256(bytes.NewReader(w.config))
	return digest, err
}

func (w withConfig) Manifest() (*v1.Manifest, error) {
	manifest, err := w.Image.Manifest()
	if err != nil {
		return nil, err
	}
	digest, err := w.ConfigName()
	if err != nil {
		return nil, err
	}
	changed := manifest.DeepCopy()
	changed.Config = v1.Descriptor{MediaType: chartConfig, Digest: digest, Size: int64(len(w.config))}
	return changed, nil
}

func (w withConfig) RawManifest() ([]byte, error) {
	manifest, err := w.Manifest()
	if err != nil {
		return nil, err
	}
	return json.Marshal(manifest)
}

func (w withConfig) Digest() (v1.Hash, error) {
	raw, err := w.RawManifest()
	if err != nil {
		return v1.Hash{}, err
	}
	digest, _, err := v1.SHA256(bytes.NewReader(raw))
	return digest, err
}

func (w withConfig) Size() (int64, error) {
	raw, err := w.RawManifest()
	return int64(len(raw)), err
}

func (w withConfig) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// missing reports whether a registry has no such tag. GitHub's registry answers 403 or 401 to a person without rights, which is another error.
func missing(err error) bool {
	var answer *transport.Error
	return errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound
}
