package cloud

import (
	"cmp"
	"os"

	"github.com/cinder-csi/cinder-csi/internal/cloudconf"
)

// ConfKeys lists the keys of [Global] in cloud.conf that FromConf reads.
func ConfKeys() []string {
	return []string{
		"auth-url", "user-id", "username", "password", "tenant-id", "tenant-name", "tenant-domain-id", "tenant-domain-name",
		"user-domain-id", "user-domain-name", "domain-id", "domain-name", "application-credential-id", "application-credential-name",
		"application-credential-secret", "trust-id", "trustee-id", "trustee-password", "token", "region", "os-endpoint-type", "ca-file",
		"tls-insecure", "cert-file", "key-file", "use-clouds", "clouds-file", "cloud",
	}
}

// FromConf reads [Global] of cloud.conf, or [Global "name"], as the upstream driver does. With use-clouds, keys that are not set
// come from clouds.yaml. If cloud names an entry there, the credentials always come from that entry. A nil env means the
// environment of the process. Errors: ErrUnknownCloud for a missing section, ErrBadFile, ErrMisconfigured.
func FromConf(f *cloudconf.File, name string, env func(string) string) (Settings, error) {
	if env == nil {
		env = os.Getenv
	}
	section := f.Section("Global", name)
	if section == nil {
		title := "[Global]"
		if name != "" {
			title = `[Global "` + name + `"]`
		}
		return Settings{}, errorf(ErrUnknownCloud, "cloud.conf has no section %s", title)
	}
	s := confSettings(section)
	s.Name = cmp.Or(name, "of cloud.conf")
	s.ExpectedProject = s.ProjectID
	useClouds, err := section.Bool("use-clouds")
	if err != nil {
		return Settings{}, errorf(ErrBadFile, "cloud.conf: %w", err)
	}
	if useClouds {
		get := func(key string) string { v, _ := section.Get(key); return v }
		src := Source{CloudName: get("cloud"), CloudsFile: get("clouds-file"), Region: s.Region, Env: env}
		base, cloudsFile, err := src.read()
		if err != nil {
			return Settings{}, err
		}
		s = s.over(base, get("cloud") != "").withConfCA(base, s.CACertFile, cloudsFile)
	}
	return s, s.validate()
}

// ConfFiles lists the files besides cloud.conf that change the result of FromConf or a login. These are the candidates for
// clouds.yaml, and the CA, certificate and key files. Some of them may not exist.
func ConfFiles(f *cloudconf.File, name string, env func(string) string) []string {
	if env == nil {
		env = os.Getenv
	}
	var files []string
	section := f.Section("Global", name)
	if useClouds, _ := section.Bool("use-clouds"); useClouds {
		file, _ := section.Get("clouds-file")
		files = Source{CloudsFile: file, Env: env}.candidates()
	}
	if s, err := FromConf(f, name, env); err == nil {
		for _, file := range []string{s.CACertFile, s.CertFile, s.KeyFile} {
			if file != "" {
				files = append(files, file)
			}
		}
	}
	return files
}

func confSettings(section *cloudconf.Section) Settings {
	get := func(key string) string { v, _ := section.Get(key); return v }
	s := Settings{
		AuthURL: get("auth-url"),
		UserID:  get("user-id"), Username: get("username"), Password: Secret(get("password")),
		UserDomainID: get("user-domain-id"), UserDomainName: get("user-domain-name"),
		ProjectID: get("tenant-id"), ProjectName: get("tenant-name"),
		ProjectDomainID: get("tenant-domain-id"), ProjectDomainName: get("tenant-domain-name"),
		DomainID: get("domain-id"), DomainName: get("domain-name"),
		ApplicationCredentialID: get("application-credential-id"), ApplicationCredentialName: get("application-credential-name"),
		ApplicationCredentialSecret: Secret(get("application-credential-secret")),
		Token:                       Secret(get("token")), TrustID: get("trust-id"),
		Region: get("region"), Interface: get("os-endpoint-type"),
		CACertFile: get("ca-file"), CertFile: get("cert-file"), KeyFile: get("key-file"),
		Insecure: get("tls-insecure") == "true", // upstream compares the string with "true" alone
	}
	if s.TrustID != "" && get("trustee-id") != "" {
		s.UserID, s.Password = get("trustee-id"), Secret(get("trustee-password"))
	}
	return s
}

// over puts s over base. Credentials come whole from one side, because no cloud accepts halves of two identities.
func (s Settings) over(base Settings, baseLogsIn bool) Settings {
	merged := s
	if !s.hasCredentials() || baseLogsIn && base.hasCredentials() {
		merged = base
	}
	merged.Name, merged.ExpectedProject = s.Name, s.ExpectedProject
	merged.AuthURL = cmp.Or(s.AuthURL, base.AuthURL)
	merged.Region = cmp.Or(s.Region, base.Region)
	merged.Interface = cmp.Or(s.Interface, base.Interface)
	merged.CACertFile = cmp.Or(s.CACertFile, base.CACertFile)
	merged.CertFile = cmp.Or(s.CertFile, base.CertFile)
	merged.KeyFile = cmp.Or(s.KeyFile, base.KeyFile)
	merged.Insecure = s.Insecure || base.Insecure
	merged.Endpoints = base.Endpoints
	return merged
}
