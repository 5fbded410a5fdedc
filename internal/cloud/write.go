package cloud

import (
	"bytes"

	"go.yaml.in/yaml/v3"
)

// CloudsYAML is a clouds.yaml with these settings as its one entry. It holds the secrets.
func (s Settings) CloudsYAML(entry string) ([]byte, error) {
	user, project := s.userDomain(), s.projectDomain()
	auth := fields{
		{"auth_url", s.AuthURL},
		{"token", string(s.Token)},
		{"user_id", s.UserID},
		{"username", s.Username},
		{"password", string(s.Password)},
		{"application_credential_id", s.ApplicationCredentialID},
		{"application_credential_name", s.ApplicationCredentialName},
		{"application_credential_secret", string(s.ApplicationCredentialSecret)},
		{"project_id", s.ProjectID},
		{"project_name", s.ProjectName},
		{"user_domain_id", user[0]},
		{"user_domain_name", user[1]},
		{"project_domain_id", project[0]},
		{"project_domain_name", project[1]},
		{"trust_id", s.TrustID},
	}
	authType := ""
	switch {
	case s.ApplicationCredentialSecret != "":
		authType = "v3applicationcredential"
	case s.Token != "":
		authType = "v3token"
	}
	cloud := fields{{"auth_type", authType}}.node()
	cloud.Content = append(cloud.Content, text("auth"), auth.node())
	cloud.Content = append(cloud.Content, fields{
		{"region_name", s.Region}, {"interface", s.Interface}, {"cacert", s.CACertFile}, {"cert", s.CertFile}, {"key", s.KeyFile},
	}.node().Content...)
	if s.Insecure {
		cloud.Content = append(cloud.Content, text("verify"), &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "false"})
	}
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	err := e.Encode(under("clouds", under(entry, cloud)))
	return out.Bytes(), err
}

// fields are texts in the order of the file. Those without a value are left out.
type fields [][2]string

func (f fields) node() *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, kv := range f {
		if kv[1] != "" {
			n.Content = append(n.Content, text(kv[0]), text(kv[1]))
		}
	}
	return n
}

func under(key string, n *yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{text(key), n}}
}

// text is a string whatever it looks like: a password may be 0123 or true.
func text(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	return n
}
