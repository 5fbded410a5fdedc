package openstacksim

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
)

// AddApplicationCredential adds an application credential to the cloud and returns it. It generates a missing ID or secret.
func (s *Sim) AddApplicationCredential(a ApplicationCredential) ApplicationCredential {
	defer s.lock()()
	return *s.addAppCred(a)
}

func (s *Sim) addAppCred(a ApplicationCredential) *ApplicationCredential {
	if a.ID == "" {
		a.ID = strings.ReplaceAll(s.newID(), "-", "")
	}
	if a.Secret == "" {
		a.Secret = base64.RawURLEncoding.EncodeToString(s.random(64))
	}
	s.appCreds = append(s.appCreds, &a)
	return &a
}

// DeleteApplicationCredential removes an application credential and the tokens from it.
func (s *Sim) DeleteApplicationCredential(id string) {
	defer s.lock()()
	for _, a := range s.appCreds {
		if a.ID == id {
			a.spent = true
		}
	}
}

func (a *ApplicationCredential) view(s *Sim, c *call, secret bool) obj {
	var roles []obj
	for _, r := range a.Roles {
		roles = append(roles, obj{{"id", FixedHex("role", r)}, {"name", r}, {"domain_id", nil}, {"description", nil}, {"options", obj{{"immutable", true}}}})
	}
	v := obj{
		{"id", a.ID},
		{"name", a.Name},
		{"description", nil},
		{"user_id", s.user(map[string]any{"name": a.User}).ID},
		{"project_id", s.project(a.Project).ID},
		{"system", nil},
		{"expires_at", microsOrNull(a.ExpiresAt)},
		{"unrestricted", nil},
		{"roles", roles},
	}
	v = v.when(len(a.AccessRules) > 0, pair{"access_rules", a.rules()})
	v = v.when(secret, pair{"secret", a.Secret})
	return append(v, pair{"links", obj{{"self", c.base(identity) + "/v3/application_credentials/" + a.ID}}})
}

// ownAppCreds are the application credentials of the user in the path. It refuses those of another user.
func (s *Sim) ownAppCreds(c *call, action string) []*ApplicationCredential {
	if c.vars["user"] != c.token.user.ID {
		panic(identityForbidden(c, action))
	}
	return where(slices.Values(s.appCreds), func(a *ApplicationCredential) bool { return !a.spent && a.User == c.token.user.Name })
}

func (s *Sim) listAppCreds(c *call) reply {
	own := s.ownAppCreds(c, "identity:list_application_credentials")
	body := pageBody("application_credentials", own, func(a *ApplicationCredential) obj { return a.view(s, c, false) })
	self := c.base(identity) + "/v3/users/" + c.vars["user"] + "/application_credentials"
	return reply{status: http.StatusOK, body: append(body, pair{"links", obj{{"next", nil}, {"self", self}, {"previous", nil}}})}
}

func (s *Sim) oneAppCred(c *call, action string) *ApplicationCredential {
	own := s.ownAppCreds(c, action)
	i := slices.IndexFunc(own, func(a *ApplicationCredential) bool { return a.ID == c.vars["id"] })
	if i < 0 {
		panic(identityNotFound(c, "Could not find Application Credential: "+c.vars["id"]+"."))
	}
	return own[i]
}

func (s *Sim) deleteAppCred(c *call) reply {
	a := s.oneAppCred(c, "identity:delete_application_credential")
	a.spent = true
	return reply{status: http.StatusNoContent}
}

func (s *Sim) createAppCred(c *call) reply {
	s.ownAppCreds(c, "identity:create_application_credential")
	if a := c.token.appCred; a != nil && !a.Unrestricted {
		return identityForbidden(c, "identity:create_application_credential")
	}
	body, bad := c.parse()
	name := digString(body, "application_credential", "name")
	if bad != nil || name == "" {
		return identityError(c, http.StatusBadRequest, "Bad Request", "'name' is a required property")
	}
	for _, old := range s.appCreds {
		if !old.spent && old.Name == name && old.User == c.token.user.Name {
			return identityError(c, http.StatusConflict, "Conflict", "Conflict occurred attempting to store application_credential - Duplicate entry found with name "+name+".")
		}
	}
	a := ApplicationCredential{Name: name, User: c.token.user.Name, Project: c.token.project.Name}
	a.Secret = digString(body, "application_credential", "secret")
	a.Unrestricted, _ = dig(body, "application_credential", "unrestricted").(bool)
	a.Roles = c.token.roles
	if roles, ok := dig(body, "application_credential", "roles").([]any); ok {
		a.Roles = each(roles, func(r any) string { return digString(r, "name") })
	}
	if rules, ok := dig(body, "application_credential", "access_rules").([]any); ok {
		a.AccessRules = each(rules, func(r any) AccessRule {
			return AccessRule{Service: digString(r, "service"), Method: digString(r, "method"), Path: digString(r, "path")}
		})
	}
	return reply{status: http.StatusCreated, body: obj{{"application_credential", s.addAppCred(a).view(s, c, true)}}}
}
