package openstacksim

import (
	"fmt"
	"strings"
)

// CloudsYAML is a clouds.yaml for every user and application credential of the cloud. baseURL is the URL of the cloud without a
// final slash (http://127.0.0.1:1234). The entry of a user is sim-USER, or
// sim-USER-PROJECT if the user has roles in several projects. The first application credential is sim-appcred, the
// others are sim-appcred-NAME.
func (s *Sim) CloudsYAML(baseURL string) []byte {
	defer s.lock()()
	var b strings.Builder
	b.WriteString("clouds:\n")
	head := func(name string) {
		fmt.Fprintf(&b, "  %s:\n    region_name: %s\n    interface: public\n    identity_api_version: 3\n    volume_api_version: 3\n", name, s.config.Region)
	}
	for _, u := range s.config.Users {
		for _, project := range sortedKeys(u.Roles) {
			name := "sim-" + u.Name
			if u.Name == "demo-reader" {
				name = "sim-reader"
			}
			if len(u.Roles) > 1 {
				name += "-" + project
			}
			head(name)
			fmt.Fprintf(&b, "    auth:\n      auth_url: %s/identity/v3\n      username: %s\n      password: %s\n      project_name: %s\n"+
				"      user_domain_name: Default\n      project_domain_name: Default\n", baseURL, u.Name, u.Password, project)
		}
	}
	for i, a := range s.appCreds {
		name := "sim-appcred"
		if i > 0 {
			name += "-" + a.Name
		}
		head(name)
		fmt.Fprintf(&b, "    auth_type: v3applicationcredential\n    auth:\n      auth_url: %s/identity/v3\n"+
			"      application_credential_id: %s\n      application_credential_secret: %s\n", baseURL, a.ID, a.Secret)
	}
	return []byte(b.String())
}

// CloudConf is a cloud.conf in upstream's dialect with the first application credential. It is empty if there is none.
func (s *Sim) CloudConf(baseURL string) []byte {
	defer s.lock()()
	if len(s.appCreds) == 0 {
		return nil
	}
	a := s.appCreds[0]
	return fmt.Appendf(nil, "[Global]\nauth-url = %s/identity/v3\nregion = %s\napplication-credential-id = %s\napplication-credential-secret = %s\n",
		baseURL, s.config.Region, a.ID, a.Secret)
}
