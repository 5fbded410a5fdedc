package cloud

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/cinder-csi/cinder-csi/internal/checkout"
	"github.com/cinder-csi/cinder-csi/internal/documents"
)

// cloudsYAML is clouds.yaml, secure.yaml or clouds-public.yaml. Keys that do not concern the login belong to other programs; this
// package ignores them. The YAML decoder reads it without a detour over JSON: a password written as 0123 or 1e5 must stay as it
// is written.
type cloudsYAML struct {
	Clouds       map[string]cloudEntry `yaml:"clouds"`
	PublicClouds map[string]cloudEntry `yaml:"public-clouds"`
}

type cloudEntry struct {
	Profile      string         `yaml:"profile"`
	Cloud        string         `yaml:"cloud"` // the old name of profile
	AuthType     string         `yaml:"auth_type"`
	Auth         authEntry      `yaml:"auth"`
	RegionName   string         `yaml:"region_name"`
	Regions      []regionEntry  `yaml:"regions"`
	Interface    string         `yaml:"interface"`
	EndpointType string         `yaml:"endpoint_type"`
	Verify       *bool          `yaml:"verify"`
	Insecure     *bool          `yaml:"insecure"`
	CACert       string         `yaml:"cacert"`
	Cert         string         `yaml:"cert"`
	Key          string         `yaml:"key"`
	Other        map[string]any `yaml:",inline"` // of which *_endpoint_override is ours
}

type authEntry struct {
	AuthURL                     string `yaml:"auth_url"`
	Token                       string `yaml:"token"`
	Username                    string `yaml:"username"`
	UserID                      string `yaml:"user_id"`
	Password                    string `yaml:"password"`
	ApplicationCredentialID     string `yaml:"application_credential_id"`
	ApplicationCredentialName   string `yaml:"application_credential_name"`
	ApplicationCredentialSecret string `yaml:"application_credential_secret"`
	SystemScope                 string `yaml:"system_scope"`
	ProjectName                 string `yaml:"project_name"`
	ProjectID                   string `yaml:"project_id"`
	TenantName                  string `yaml:"tenant_name"`
	TenantID                    string `yaml:"tenant_id"`
	UserDomainName              string `yaml:"user_domain_name"`
	UserDomainID                string `yaml:"user_domain_id"`
	ProjectDomainName           string `yaml:"project_domain_name"`
	ProjectDomainID             string `yaml:"project_domain_id"`
	DomainName                  string `yaml:"domain_name"`
	DomainID                    string `yaml:"domain_id"`
	DefaultDomain               string `yaml:"default_domain"`
	TrustID                     string `yaml:"trust_id"`

	Other map[string]any `yaml:",inline"` // misplaced or of another program
}

// regionEntry is a region name, or a name with values for that region.
type regionEntry struct {
	Name   string    `yaml:"name"`
	Values yaml.Node `yaml:"values"`
}

func (r *regionEntry) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		return n.Decode(&r.Name)
	}
	type plain regionEntry
	return n.Decode((*plain)(r))
}

// cloudsFiles is one clouds.yaml and its companion files.
type cloudsFiles struct {
	path   string
	change bool // who proposes a change of a checkout may have written the files beside it
	clouds map[string]cloudEntry
	secure map[string]cloudEntry
	public map[string]cloudEntry
}

// readCompanions reads secure.yaml and clouds-public.yaml beside clouds.yaml. openstacksdk also reads a clouds-public.yaml in the
// working directory. This package does not: a pull request controls that directory in a pipeline, and could send the credentials
// elsewhere.
func (f *cloudsFiles) readCompanions() error {
	var secure, public cloudsYAML
	read := readYAML
	if f.change {
		read = readOwnYAML
	}
	for path, into := range map[string]*cloudsYAML{f.beside("secure.yaml"): &secure, f.beside(publicFile): &public} {
		if err := read(path, into); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	f.secure, f.public = secure.Clouds, public.PublicClouds
	return nil
}

const publicFile = "clouds-public.yaml"

func (f *cloudsFiles) beside(name string) string { return filepath.Join(filepath.Dir(f.path), name) }

var lineNumber = regexp.MustCompile(`\bline \d+`)

// readOwnYAML is readYAML for a file that nobody has named. A link in a checkout could put the credentials of one file together with the address of
// another.
func readOwnYAML(path string, into *cloudsYAML) error {
	if err := checkout.CheckLinks(path); err != nil {
		return errorf(ErrBadFile, "clouds file %s: %w, in OS_CLIENT_CONFIG_FILE", path, err)
	}
	return readYAML(path, into)
}

// readYAML reads one file. It passes on only the line numbers of the parser message: the rest may quote a password.
func readYAML(path string, into *cloudsYAML) error {
	src, err := readFile(path)
	if err != nil {
		return errorf(ErrBadFile, "clouds file: %w", err)
	}
	return decodeYAML(path, src, into)
}

func decodeYAML(path string, src []byte, into *cloudsYAML) error {
	if err := documents.Check(src); err != nil {
		return errorf(ErrBadFile, "clouds file %s: %w", path, err)
	}
	if err := yaml.Unmarshal(src, into); err != nil {
		problem := "it is not valid YAML"
		if errors.As(err, new(*yaml.TypeError)) {
			problem = "a value is of the wrong type"
		}
		if lines := lineNumber.FindAllString(err.Error(), -1); len(lines) > 0 {
			problem += " at " + strings.Join(slices.Compact(lines), ", ")
		}
		return errorf(ErrBadFile, "clouds file %s: %s", path, problem)
	}
	return nil
}

// largestFile is the size limit of a clouds file in bytes. A Kubernetes Secret has the same limit.
const largestFile = 1 << 20

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, largestFile+1))
	if err == nil && len(src) > largestFile {
		err = fmt.Errorf("%s is larger than %d bytes", path, largestFile)
	}
	return src, err
}

// settings returns the entry with that name, or the only entry if name is empty, for a region.
func (f *cloudsFiles) settings(name, region string) (Settings, error) {
	names := slices.Sorted(maps.Keys(f.clouds))
	if name == "" && len(names) == 1 {
		name = names[0]
	}
	entry, ok := f.clouds[name]
	switch {
	case name == "":
		return Settings{}, errorf(ErrUnknownCloud, "no cloud was chosen; give --os-cloud or set OS_CLOUD to one of %s of %s", list(names), f.path)
	case !ok:
		return Settings{}, errorf(ErrUnknownCloud, "there is no cloud %q in %s; it has %s", name, f.path, list(names))
	}
	if err := f.checkSecure(name); err != nil {
		return Settings{}, err
	}
	entry, err := f.withProfile(entry.under(f.secure[name]), name, region)
	if err != nil {
		return Settings{}, err
	}
	entry, err = entry.inRegion(name, region)
	if err != nil {
		return Settings{}, err
	}
	return entry.settings(name)
}

// checkSecure refuses a secure.yaml in a checkout that says more than who logs in. A change of a checkout could bring one along, whose address
// would get the password of a clouds.yaml beside it.
func (f *cloudsFiles) checkSecure(name string) error {
	secure := f.secure[name]
	address := secure.Auth.AuthURL
	secure.Auth = authEntry{}
	if !f.change || reflect.DeepEqual(secure, cloudEntry{}) && (address == "" || address == f.clouds[name].Auth.AuthURL) {
		return nil
	}
	return errorf(ErrBadFile, "clouds file %s: in a checkout, the entry %s may have credentials below auth and nothing else. Move the rest to %s, or "+
		"keep both files elsewhere and set OS_CLIENT_CONFIG_FILE", f.beside("secure.yaml"), name, f.path)
}

func list(names []string) string {
	if len(names) == 0 {
		return "no clouds"
	}
	return strings.Join(names, ", ")
}

// inRegion applies the values of a region. The first region of a list is the default, as in openstacksdk.
func (e cloudEntry) inRegion(name, region string) (cloudEntry, error) {
	region = cmp.Or(region, e.RegionName)
	if region == "" && len(e.Regions) > 0 {
		region = e.Regions[0].Name
	}
	e.RegionName = region
	for _, r := range e.Regions {
		if r.Name != region {
			continue
		}
		var values cloudEntry
		if r.Values.Kind != 0 {
			if err := r.Values.Decode(&values); err != nil {
				return e, errorf(ErrBadFile, "cloud %s: region %s: its values are of the wrong type", name, region)
			}
		}
		e = e.under(values)
		e.RegionName = region
		return e, nil
	}
	if len(e.Regions) > 0 {
		var names []string
		for _, r := range e.Regions {
			names = append(names, r.Name)
		}
		return e, errorf(ErrMisconfigured, "cloud %s has no region %q; it has %s", name, region, list(names))
	}
	return e, nil
}

// overlay copies every field that is set. It walks the fields, so nobody can forget a new one.
func overlay(into, over reflect.Value) {
	switch {
	case over.Kind() == reflect.Struct:
		for i := range over.NumField() {
			overlay(into.Field(i), over.Field(i))
		}
	case over.IsZero():
	case over.Kind() == reflect.Map && !into.IsNil():
		for _, key := range over.MapKeys() {
			into.SetMapIndex(key, over.MapIndex(key))
		}
	default:
		into.Set(over)
	}
}

// unread has a sentence for each key that a reader of clouds.yaml may expect to count, and that does not. It quotes no value.
func (e cloudEntry) unread(name string) []string {
	var all []string
	tell := func(key, what string) { all = append(all, "cloud "+name+": clouds.yaml: "+key+" "+what) }
	entry, auth := yamlKeys(reflect.TypeFor[cloudEntry]()), yamlKeys(reflect.TypeFor[authEntry]())
	for _, key := range slices.Sorted(maps.Keys(e.Auth.Other)) {
		switch {
		case slices.Contains(entry, key) || strings.HasSuffix(key, "_endpoint_override"):
			tell("auth."+key, "is misplaced and not read; it belongs beside auth, not below it")
		default:
			tell("auth."+key, "is not read")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(e.Other)) {
		_, isText := e.Other[key].(string)
		service, _, _ := strings.Cut(key, "_")
		switch {
		case strings.HasSuffix(key, "_endpoint_override") && !isText:
			tell(key, "is not read, because it is no text")
		case strings.HasSuffix(key, "_endpoint_override"):
		case strings.HasSuffix(key, "_api_version") && strings.HasPrefix(fmt.Sprint(e.Other[key]), "3"): // there is no other
		case slices.Contains(auth, key):
			tell(key, "is misplaced and not read; it belongs below auth")
		case slices.Contains([]string{"volume", "volumev3", "block", "compute", "identity"}, service) && perService.MatchString(key):
			tell(key, "is not read; interface and region_name count for every service, and "+service+"_endpoint_override for one")
		}
	}
	return all
}

// perService matches keys of openstacksdk for one service.
var perService = regexp.MustCompile(`_(?:interface|service_type|service_name|api_version|region_name)$`)

// yamlKeys are the keys of a struct in YAML.
func yamlKeys(of reflect.Type) []string {
	var keys []string
	for i := range of.NumField() {
		if key, _, _ := strings.Cut(of.Field(i).Tag.Get("yaml"), ","); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

func (e cloudEntry) settings(name string) (Settings, error) {
	a := e.Auth
	s := Settings{
		Name: name, AuthURL: a.AuthURL,
		UserID: a.UserID, Username: a.Username, Password: Secret(a.Password),
		UserDomainID: a.UserDomainID, UserDomainName: a.UserDomainName,
		ProjectID: cmp.Or(a.ProjectID, a.TenantID), ProjectName: cmp.Or(a.ProjectName, a.TenantName),
		ProjectDomainID: a.ProjectDomainID, ProjectDomainName: a.ProjectDomainName,
		DomainID: a.DomainID, DomainName: a.DomainName, DefaultDomainID: a.DefaultDomain,
		ApplicationCredentialID: a.ApplicationCredentialID, ApplicationCredentialName: a.ApplicationCredentialName,
		ApplicationCredentialSecret: Secret(a.ApplicationCredentialSecret),
		Token:                       Secret(a.Token), TrustID: a.TrustID,
		Region: e.RegionName, Interface: cmp.Or(e.EndpointType, e.Interface),
		CACertFile: e.CACert, CertFile: e.Cert, KeyFile: e.Key,
		Insecure: e.Insecure != nil && *e.Insecure || e.Verify != nil && !*e.Verify,
	}
	s.Unread = e.unread(name)
	if a.SystemScope != "" {
		return s, errorf(ErrMisconfigured, "cloud %s: system_scope has no volumes; scope it to a project", name)
	}
	for key, value := range e.Other {
		service, ok := strings.CutSuffix(key, "_endpoint_override")
		url, isString := value.(string)
		if ok && isString {
			if s.Endpoints == nil {
				s.Endpoints = map[string]string{}
			}
			s.Endpoints[strings.ReplaceAll(service, "_", "-")] = url
		}
	}
	return s.only(e.AuthType)
}
