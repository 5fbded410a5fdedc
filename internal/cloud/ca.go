package cloud

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// caBeside is the file beside clouds.yaml that may hold the CA of the cloud. It is the key of the Secret where OpenShift's Cloud
// Credential Operator and HyperShift put the certificates. Both write a cacert into clouds.yaml that is a path in their own pods.
const caBeside = "cacert"

// withCA decides which CA file an entry of clouds.yaml means. If the file that it names does not exist on this machine, the file
// cacert beside clouds.yaml takes its place. Without that one the path stays, and the login fails: the certificates of the system
// are no replacement for a CA that somebody has named.
func (s Settings) withCA(cloudsFile string) Settings {
	beside := filepath.Join(filepath.Dir(cloudsFile), caBeside)
	if s.CACertFile == "" || !isMissing(s.CACertFile) || !hasContent(beside) {
		return s
	}
	s.CANote = "clouds.yaml names the CA file " + Clean(s.CACertFile) + ", which does not exist here; the file " + beside + " takes its place"
	s.CACertFile = beside
	return s
}

// withConfCA is withCA for a cloud.conf: its ca-file comes before everything that clouds.yaml says. Without either, a file cacert
// beside clouds.yaml counts, because a mounted Secret holds nothing by chance.
func (s Settings) withConfCA(base Settings, caFile, cloudsFile string) Settings {
	s.CANote = base.CANote
	switch beside := filepath.Join(filepath.Dir(cloudsFile), caBeside); {
	case caFile != "" && base.CACertFile != "" && (base.CANote != "" || isMissing(base.CACertFile)):
		s.CANote = "clouds.yaml names a CA file that does not exist here; ca-file of cloud.conf, " + caFile + ", takes its place"
	case s.CACertFile == "" && cloudsFile != "" && hasContent(beside):
		s.CACertFile = beside
		s.CANote = "neither cloud.conf nor clouds.yaml names a CA file; the file " + beside + " is used"
	}
	return s
}

func isMissing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func hasContent(path string) bool {
	file, err := os.Stat(path)
	return err == nil && file.Mode().IsRegular() && file.Size() > 0
}

// caMissing says what to do about a CA file that cannot be read.
func (s Settings) caMissing(err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return errorf(ErrBadFile, "cloud %s: CA file: %w", s.Name, err)
	}
	return errorf(ErrBadFile, "cloud %s: CA file: %w; if clouds.yaml names it, the path is of another machine. Put the certificates into key %s of the Secret with clouds.yaml, or let ca-file of cloud.conf (the generator: --os-cacert) name them",
		s.Name, err, caBeside)
}

// caHint says what to do about a certificate of an authority that nobody here trusts.
func (s Settings) caHint() string {
	if s.CACertFile != "" {
		return "the CA file " + s.CACertFile + " does not have the authority that signed this certificate; add it there, beside the old one"
	}
	return "put the certificate of a private CA into key " + caBeside + " of the Secret with clouds.yaml, or set ca-file of cloud.conf (the generator: --os-cacert)"
}
