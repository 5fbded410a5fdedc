package cloud

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/internal/checkout"
)

// Source is where a command looks for its cloud: first flags, then the environment, then the files that python-openstackclient
// reads (openstacksdk, "Configuring OpenStack SDK Applications").
type Source struct {
	CloudName  string              // --os-cloud; empty means OS_CLOUD
	CloudsFile string              // empty means OS_CLIENT_CONFIG_FILE, then the standard paths
	Region     string              // --os-region-name; empty means OS_REGION_NAME, then the value in the file
	CACert     string              // --os-cacert; empty means OS_CACERT, then the value in the file
	Env        func(string) string // the environment; nil means that of the process
}

// FromSource returns the settings of one cloud. A name selects an entry of clouds.yaml. Without a name, OS_AUTH_URL and the other
// OS_* variables describe the cloud. Without those, a clouds.yaml with a single entry does. Errors: ErrUnknownCloud, ErrBadFile,
// ErrMisconfigured.
func FromSource(src Source) (Settings, error) {
	s, _, err := src.read()
	if err != nil {
		return Settings{}, err
	}
	return s, s.validate()
}

// read returns the settings and the path of the clouds.yaml that they come from, if there is one.
func (src Source) read() (Settings, string, error) {
	if src.Env == nil {
		src.Env = os.Getenv
	}
	name := cmp.Or(src.CloudName, src.Env("OS_CLOUD"))
	if name == "" && src.Env("OS_AUTH_URL") != "" {
		s, err := src.fromEnv()
		return src.override(s), "", err
	}
	files, err := src.findClouds()
	if err != nil {
		return Settings{}, "", err
	}
	region := cmp.Or(src.Region, src.Env("OS_REGION_NAME"))
	s, err := files.settings(name, region)
	if err != nil {
		return Settings{}, "", err
	}
	s.CACertFile = src.expand(s.CACertFile)
	if cmp.Or(src.CACert, src.Env("OS_CACERT")) == "" {
		s = s.withCA(files.path)
	}
	return src.override(s), files.path, nil
}

// override applies the flags and the variables that count for a cloud from any source.
func (src Source) override(s Settings) Settings {
	s.Region = cmp.Or(src.Region, src.Env("OS_REGION_NAME"), s.Region)
	s.Interface = cmp.Or(src.Env("OS_INTERFACE"), s.Interface)
	s.CACertFile = src.expand(cmp.Or(src.CACert, src.Env("OS_CACERT"), s.CACertFile))
	s.CertFile = src.expand(cmp.Or(src.Env("OS_CERT"), s.CertFile))
	s.KeyFile = src.expand(cmp.Or(src.Env("OS_KEY"), s.KeyFile))
	return s
}

// expand resolves ~/ as a shell does.
func (src Source) expand(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok && src.Env("HOME") != "" {
		return filepath.Join(src.Env("HOME"), rest)
	}
	return path
}

func (src Source) fromEnv() (Settings, error) {
	env := src.Env
	s := Settings{
		Name:                        "from the environment",
		AuthURL:                     env("OS_AUTH_URL"),
		UserID:                      cmp.Or(env("OS_USER_ID"), env("OS_USERID")),
		Username:                    env("OS_USERNAME"),
		Password:                    Secret(env("OS_PASSWORD")),
		UserDomainID:                env("OS_USER_DOMAIN_ID"),
		UserDomainName:              env("OS_USER_DOMAIN_NAME"),
		ProjectID:                   cmp.Or(env("OS_PROJECT_ID"), env("OS_TENANT_ID")),
		ProjectName:                 cmp.Or(env("OS_PROJECT_NAME"), env("OS_TENANT_NAME")),
		ProjectDomainID:             env("OS_PROJECT_DOMAIN_ID"),
		ProjectDomainName:           env("OS_PROJECT_DOMAIN_NAME"),
		DomainID:                    env("OS_DOMAIN_ID"),
		DomainName:                  env("OS_DOMAIN_NAME"),
		DefaultDomainID:             cmp.Or(env("OS_DEFAULT_DOMAIN_ID"), env("OS_DEFAULT_DOMAIN")),
		ApplicationCredentialID:     env("OS_APPLICATION_CREDENTIAL_ID"),
		ApplicationCredentialName:   env("OS_APPLICATION_CREDENTIAL_NAME"),
		ApplicationCredentialSecret: Secret(env("OS_APPLICATION_CREDENTIAL_SECRET")),
		Token:                       Secret(cmp.Or(env("OS_TOKEN"), env("OS_AUTH_TOKEN"))),
		TrustID:                     env("OS_TRUST_ID"),
		Interface:                   env("OS_ENDPOINT_TYPE"),
		Insecure:                    truth(env("OS_INSECURE")),
	}
	return s.only(env("OS_AUTH_TYPE"))
}

func truth(s string) bool {
	switch strings.ToLower(s) {
	case "true", "yes", "on", "1":
		return true
	}
	return false
}

// only keeps the credentials that the auth_type of keystoneauth names; an empty auth_type keeps all.
func (s Settings) only(authType string) (Settings, error) {
	switch authType {
	case "":
	case "password", "v3password":
		s.ApplicationCredentialID, s.ApplicationCredentialName, s.ApplicationCredentialSecret, s.Token = "", "", "", ""
	case "v3applicationcredential":
		s.Password, s.Token = "", ""
	case "token", "v3token":
		s.ApplicationCredentialID, s.ApplicationCredentialName, s.ApplicationCredentialSecret, s.Password = "", "", "", ""
	default:
		return s, errorf(ErrMisconfigured, "cloud %s: auth_type %s is not supported; use password, v3applicationcredential or token",
			s.Name, authType)
	}
	return s, nil
}

// candidates lists the paths where clouds.yaml may be, in the order of search.
func (src Source) candidates() []string {
	if file := cmp.Or(src.CloudsFile, src.Env("OS_CLIENT_CONFIG_FILE")); file != "" {
		return []string{src.expand(file)}
	}
	var paths []string
	for _, dir := range src.directories() {
		paths = append(paths, filepath.Join(dir, "clouds.yaml"), filepath.Join(dir, "clouds.yml"))
	}
	return paths
}

// findClouds reads the first clouds.yaml that exists, and its companion files.
func (src Source) findClouds() (*cloudsFiles, error) {
	paths := src.candidates()
	for _, path := range paths {
		var clouds cloudsYAML
		read := readYAML
		if len(paths) > 1 && !filepath.IsAbs(path) { // nobody has named it
			read = readOwnYAML
		}
		err := read(path, &clouds)
		if errors.Is(err, fs.ErrNotExist) && len(paths) > 1 {
			continue
		}
		if err != nil {
			return nil, err
		}
		top, _, err := checkout.Top(path)
		if err != nil {
			return nil, err
		}
		change := top != "" && !slices.Contains(src.directories()[1:], filepath.Dir(path)) // a home may be a checkout
		files := &cloudsFiles{path: path, change: change, clouds: clouds.Clouds}
		return files, files.readCompanions()
	}
	return nil, errorf(ErrBadFile, "no clouds.yaml found; the search was for %s; set OS_CLIENT_CONFIG_FILE, or OS_AUTH_URL and credentials",
		strings.Join(paths, ", "))
}

func (src Source) directories() []string {
	dirs := []string{"."}
	if config := src.Env("XDG_CONFIG_HOME"); config != "" {
		dirs = append(dirs, filepath.Join(config, "openstack"))
	} else if home := src.Env("HOME"); home != "" {
		dirs = append(dirs, filepath.Join(home, ".config", "openstack"))
	}
	return append(dirs, "/etc/openstack")
}

// Names lists the clouds of clouds.yaml, sorted. Errors: ErrUnknownCloud if there is no file, ErrBadFile.
func Names(src Source) ([]string, error) {
	if src.Env == nil {
		src.Env = os.Getenv
	}
	files, err := src.findClouds()
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(files.clouds)), nil
}
