package migrate

import (
	"fmt"

	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/internal/cloudconf"
)

// CloudConf is the one cloud.conf of the files. It holds the credentials. Errors: ErrFile.
func (i *Importer) CloudConf() (*cloudconf.File, error) {
	switch len(i.credentials) {
	case 0:
		return nil, fmt.Errorf("%w: --clouds-yaml: no file is a cloud.conf, so there are no credentials to convert; give the cloud.conf as a further file", ErrFile)
	case 1:
	default:
		return nil, fmt.Errorf("%w: --clouds-yaml: %d files are a cloud.conf; give the one with the credentials", ErrFile, len(i.credentials))
	}
	conf := i.credentials[0].conf
	if use, _ := conf.Section(config.Global, "").Bool("use-clouds"); use {
		return nil, fmt.Errorf("%w: --clouds-yaml: this cloud.conf takes the credentials from a clouds.yaml (use-clouds); put that file into the Secret", ErrFile)
	}
	return conf, nil
}
