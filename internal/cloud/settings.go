// Package cloud reads the configuration of an OpenStack cloud (clouds.yaml, [Global] of cloud.conf, OS_* variables) into
// Settings. From Settings it makes clients that are logged in.
//
// It reads the environment only through the function that the caller gives, and never changes it. So one process can use any
// number of clouds, each with its own files. Secrets have the type Secret and do not print.
package cloud

import (
	"cmp"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
)

// Secret is a string that does not print, log or encode. Convert it to string where it is really needed.
type Secret string

const redacted = "REDACTED"

func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return `"` + s.String() + `"` }

// LogValue hides the secret from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText hides the secret from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Settings is all that a login to one cloud needs. If both an ID and a name are set, the ID counts.
type Settings struct {
	Name string // for messages only: the entry in clouds.yaml or the section in cloud.conf

	AuthURL string

	UserID, Username                   string
	Password                           Secret
	UserDomainID, UserDomainName       string
	ProjectID, ProjectName             string
	ProjectDomainID, ProjectDomainName string
	DomainID, DomainName               string // replace a missing user or project domain
	DefaultDomainID                    string // replaces any missing domain

	ApplicationCredentialID, ApplicationCredentialName string
	ApplicationCredentialSecret                        Secret

	// ExpectedProject is the project that the login must be for; empty means any. A credential may have another scope than cloud.conf names.
	ExpectedProject string

	Token   Secret // cannot be renewed: requests fail after it expires
	TrustID string

	Region    string // "" means the first region in the catalog with the service
	Interface string // public, internal or admin; "" means public

	CACertFile        string // replaces the certificate authorities of the system
	CANote            string // why CACertFile is another file than the one that clouds.yaml names; empty if it is not
	CertFile, KeyFile string // client certificate
	Insecure          bool   // the client does not verify the certificate of the server

	// Endpoints override the catalog, by service type ("block-storage").
	Endpoints map[string]string

	Unread []string // a sentence for each key of clouds.yaml that somebody may expect to count and that does not
}

// LogValue names the cloud and the user, without secrets.
func (s Settings) LogValue() slog.Value {
	return slog.GroupValue(slog.String("name", s.Name), slog.String("auth_url", s.plainURL()), slog.String("user", s.who()),
		slog.String("region", s.Region))
}

func (s Settings) plainURL() string { return PlainURL(s.AuthURL) }

// who names the identity for messages.
func (s Settings) who() string {
	switch {
	case s.ApplicationCredentialID != "":
		return "application credential " + s.ApplicationCredentialID
	case s.ApplicationCredentialName != "":
		return "application credential " + s.ApplicationCredentialName + " of user " + cmp.Or(s.UserID, s.Username)
	case s.Token != "":
		return "a token"
	}
	return "user " + cmp.Or(s.Username, s.UserID)
}

func (s Settings) hasCredentials() bool {
	return s.Password != "" || s.ApplicationCredentialSecret != "" || s.Token != ""
}

// validate refuses settings that no cloud could accept.
func (s Settings) validate() error {
	missing := func(what, hint string) error {
		return errorf(ErrMisconfigured, "cloud %s: %s is missing; %s", s.Name, what, hint)
	}
	if s.AuthURL == "" {
		return missing("the authentication URL", "set auth_url (cloud.conf: auth-url, environment: OS_AUTH_URL)")
	}
	if u, err := url.Parse(s.AuthURL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errorf(ErrMisconfigured, "cloud %s: the authentication URL is not an http or https URL", s.Name)
	}
	switch strings.TrimSuffix(s.Interface, "URL") {
	case "", "public", "internal", "admin":
	default:
		return errorf(ErrMisconfigured, "cloud %s: interface %q is none of public, internal, admin", s.Name, s.Interface)
	}
	if (s.CertFile == "") != (s.KeyFile == "") {
		return missing("one of client certificate and key", "set both or neither")
	}
	user := s.UserID != "" || s.Username != "" && cmp.Or(s.userDomain()...) != ""
	const userHint = "set user_id, or username with user_domain_name"
	switch {
	case s.ApplicationCredentialID != "" || s.ApplicationCredentialName != "":
		if s.ApplicationCredentialSecret == "" {
			return missing("the secret of the application credential", "set application_credential_secret")
		}
		if s.ApplicationCredentialID == "" && !user {
			return missing("the owner of the application credential", userHint+", or use the ID of the credential")
		}
		return nil
	case s.Token != "":
		return nil
	case s.Password == "":
		return missing("a password, application credential or token", "set one of them")
	case !user:
		return missing("the user or the domain of the user", userHint)
	case s.TrustID == "" && s.ProjectID == "" && (s.ProjectName == "" || cmp.Or(s.projectDomain()...) == ""):
		return missing("the project or the domain of the project", "set project_id, or project_name with project_domain_name")
	}
	return nil
}

// Weaknesses returns a sentence for each setting that lets an attacker on the network read the credentials. Somebody chose such
// settings on purpose, so the driver warns about them and refuses nothing.
func (s Settings) Weaknesses() []string {
	var all []string
	if s.Insecure {
		all = append(all, "cloud "+s.Name+": the certificates of the cloud are not verified (insecure, verify: false, tls-insecure); "+
			"an attacker on the network can read the credentials. Set the CA file of the cloud instead")
	}
	urls := []string{s.AuthURL}
	for _, kind := range slices.Sorted(maps.Keys(s.Endpoints)) {
		urls = append(urls, s.Endpoints[kind])
	}
	for _, address := range urls {
		if u, err := url.Parse(address); err == nil && u.Scheme == "http" {
			all = append(all, "cloud "+s.Name+": the connection to "+PlainURL(address)+" is not encrypted; an attacker on the network can read the credentials. Use https")
		}
	}
	return all
}

// userDomain is the domain of the user as ID and name, at most one of them set.
func (s Settings) userDomain() []string {
	return domain(s.UserDomainID, s.UserDomainName, s.DomainID, s.DomainName, s.DefaultDomainID)
}

// projectDomain is the domain of the project as ID and name, at most one of them set.
func (s Settings) projectDomain() []string {
	return domain(s.ProjectDomainID, s.ProjectDomainName, s.DomainID, s.DomainName, s.DefaultDomainID)
}

func domain(id, name, fallbackID, fallbackName, defaultID string) []string {
	switch {
	case id != "":
		return []string{id, ""}
	case name != "":
		return []string{"", name}
	case fallbackID != "":
		return []string{fallbackID, ""}
	case fallbackName != "":
		return []string{"", fallbackName}
	}
	return []string{defaultID, ""}
}

// authOptions is the login request of gophercloud.
func (s Settings) authOptions() gophercloud.AuthOptions {
	o := gophercloud.AuthOptions{IdentityEndpoint: s.AuthURL, AllowReauth: s.Token == ""}
	switch {
	case s.ApplicationCredentialID != "":
		o.ApplicationCredentialID, o.ApplicationCredentialSecret = s.ApplicationCredentialID, string(s.ApplicationCredentialSecret)
		return o
	case s.ApplicationCredentialName != "":
		o.ApplicationCredentialName, o.ApplicationCredentialSecret = s.ApplicationCredentialName, string(s.ApplicationCredentialSecret)
	case s.Token != "":
		o.TokenID = string(s.Token)
	default:
		o.Password = string(s.Password)
	}
	if s.Token == "" {
		if o.UserID = s.UserID; o.UserID == "" {
			d := s.userDomain()
			o.Username, o.DomainID, o.DomainName = s.Username, d[0], d[1]
		}
	}
	switch d := s.projectDomain(); {
	case s.ApplicationCredentialName != "": // its scope is its own
	case s.TrustID != "":
		o.Scope = &gophercloud.AuthScope{TrustID: s.TrustID}
	case s.ProjectID != "":
		o.Scope = &gophercloud.AuthScope{ProjectID: s.ProjectID}
	case s.ProjectName != "":
		o.Scope = &gophercloud.AuthScope{ProjectName: s.ProjectName, DomainID: d[0], DomainName: d[1]}
	}
	return o
}
