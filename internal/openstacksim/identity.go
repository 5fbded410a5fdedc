package openstacksim

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"
)

func identityError(c *call, status int, title, message string) reply {
	r := reply{status: status, body: obj{{"error", obj{{"code", status}, {"message", message}, {"title", title}}}}}
	if status == http.StatusUnauthorized {
		r.header = http.Header{"Www-Authenticate": {`Keystone uri="` + c.base(identity) + `/v3"`}}
	}
	return r
}

func unauthorized(c *call) reply {
	return identityError(c, http.StatusUnauthorized, "Unauthorized", "The request you have made requires authentication.")
}

func identityForbidden(c *call, action string) reply {
	return identityError(c, http.StatusForbidden, "Forbidden", "You are not authorized to perform the requested action: "+action+".")
}

func identityNotFound(c *call, message string) reply {
	return identityError(c, http.StatusNotFound, "Not Found", message)
}

var identityRoutes = []route{
	{method: "GET", path: "v3/auth/tokens", serve: (*Sim).showToken},
	{method: "HEAD", path: "v3/auth/tokens", serve: (*Sim).showToken},
	{method: "DELETE", path: "v3/auth/tokens", serve: (*Sim).revokeToken},
	{method: "GET", path: "v3/auth/catalog", serve: (*Sim).showCatalog},
	{method: "GET", path: "v3/auth/projects", serve: (*Sim).listOwnProjects},
	{method: "GET", path: "v3/projects", serve: (*Sim).listProjects},
	{method: "GET", path: "v3/projects/{id}", serve: (*Sim).showProject},
	{method: "GET", path: "v3/users/{user}/application_credentials", serve: (*Sim).listAppCreds},
	{method: "POST", path: "v3/users/{user}/application_credentials", serve: (*Sim).createAppCred},
	{method: "GET", path: "v3/users/{user}/application_credentials/{id}", serve: show("application_credential", func(s *Sim, c *call) any {
		return s.oneAppCred(c, "identity:get_application_credential").view(s, c, false)
	})},
	{method: "DELETE", path: "v3/users/{user}/application_credentials/{id}", serve: (*Sim).deleteAppCred},
}

func (s *Sim) serveIdentity(c *call) reply {
	path := strings.Trim(c.path, "/")
	switch {
	case path == "":
		return reply{
			status: http.StatusMultipleChoices, body: obj{{"versions", obj{{"values", []obj{identityVersion(c)}}}}},
			header: http.Header{"Location": {c.base(identity) + "/v3/"}},
		}
	case path == "v3":
		return reply{status: http.StatusOK, body: obj{{"version", identityVersion(c)}}}
	case path == "v3/auth/tokens" && c.Method == http.MethodPost:
		return s.createToken(c)
	}
	for _, r := range identityRoutes {
		vars, ok := match(r.path, path)
		if !ok || r.method != c.Method {
			continue
		}
		if refusal := s.authenticate(c, "identity"); refusal != nil {
			return unauthorized(c)
		}
		c.vars = vars
		return r.answer(s, c)
	}
	return reply{status: http.StatusNotFound, body: text{"text/html; charset=utf-8", "<!doctype html>\n<html lang=en>\n<title>404 Not Found</title>\n<h1>Not Found</h1>\n" +
		"<p>The requested URL was not found on the server. If you entered the URL manually please check your spelling and try again.</p>\n"}}
}

// dig walks nested JSON objects; it returns nil if one is missing.
func dig(v any, keys ...string) any {
	for _, k := range keys {
		m, _ := v.(map[string]any)
		v = m[k]
	}
	return v
}

func digString(v any, keys ...string) string {
	s, _ := dig(v, keys...).(string)
	return s
}

func (s *Sim) createToken(c *call) reply {
	body, bad := c.parse()
	if bad != nil {
		return notExpected(c, "valid JSON", "request body")
	}
	switch {
	case dig(body, "auth") == nil:
		return identityError(c, http.StatusBadRequest, "Bad Request", "'auth' is a required property")
	case dig(body, "auth", "identity") == nil:
		return identityError(c, http.StatusBadRequest, "Bad Request", "'identity' is a required property")
	case dig(body, "auth", "identity", "methods") == nil:
		return identityError(c, http.StatusBadRequest, "Bad Request", "Invalid input for field 'identity': 'methods' is a required property")
	}
	who := dig(body, "auth", "identity")
	methods, _ := dig(who, "methods").([]any)
	for _, m := range methods {
		if name, _ := m.(string); dig(who, name) == nil {
			return notExpected(c, name, "identity")
		}
	}
	if len(methods) != 1 {
		return unauthorized(c)
	}
	if u := dig(who, "password", "user"); u != nil && digString(u, "id") == "" && dig(u, "domain") == nil {
		return notExpected(c, "domain", "user")
	}
	var t *token
	var refusal *reply
	switch methods[0] {
	case "password":
		t = s.byPassword(who)
	case "application_credential":
		t, refusal = s.byAppCred(c, who)
	case "token":
		t = s.byToken(who)
	}
	if refusal != nil {
		return *refusal
	}
	if t == nil || t.appCred == nil && !s.scope(t, dig(body, "auth", "scope")) {
		return unauthorized(c)
	}
	issued := s.issue(*t)
	return reply{status: http.StatusCreated, body: issued.view(s, c), header: http.Header{"X-Subject-Token": {issued.id}}}
}

// notExpected is the error of Keystone for a body that lacks a field.
func notExpected(c *call, what, where string) reply {
	return identityError(c, http.StatusBadRequest, "Bad Request", "Expecting to find "+what+" in "+where+". The server could not comply with the request "+
		"since it is either malformed or otherwise incorrect. The client is assumed to be in error.")
}

// user finds the user of an identity, by ID or by name in the domain Default.
func (s *Sim) user(who any) *User {
	id, name := digString(who, "id"), digString(who, "name")
	if d := dig(who, "domain"); name != "" && d != nil && digString(d, "id") != "default" && digString(d, "name") != "Default" {
		return nil
	}
	for i, u := range s.config.Users {
		if id != "" && u.ID == id || id == "" && name != "" && u.Name == name {
			return &s.config.Users[i]
		}
	}
	return nil
}

func (s *Sim) byPassword(who any) *token {
	u := s.user(dig(who, "password", "user"))
	if u == nil || digString(who, "password", "user", "password") != u.Password {
		return nil
	}
	return &token{methods: []string{"password"}, user: *u}
}

func (s *Sim) byToken(who any) *token {
	old := s.valid(digString(who, "token", "id"))
	if old == nil {
		return nil
	}
	methods := old.methods
	if !slices.Contains(methods, "token") {
		methods = append(slices.Clone(methods), "token")
	}
	return &token{methods: methods, user: old.user, expires: old.expires, appCred: old.appCred, project: old.project, roles: old.roles}
}

func (s *Sim) byAppCred(c *call, who any) (*token, *reply) {
	id, name := digString(who, "application_credential", "id"), digString(who, "application_credential", "name")
	var found *ApplicationCredential
	u := s.user(dig(who, "application_credential", "user"))
	for _, a := range s.appCreds {
		if !a.spent && (id != "" && a.ID == id || id == "" && u != nil && a.User == u.Name && a.Name == name) {
			found = a
		}
	}
	if found == nil {
		if id == "" {
			return nil, nil
		}
		return nil, new(identityNotFound(c, "Could not find Application Credential: "+id+"."))
	}
	if digString(who, "application_credential", "secret") != found.Secret || !found.ExpiresAt.IsZero() && !time.Now().Before(found.ExpiresAt) {
		return nil, nil
	}
	owner := s.user(map[string]any{"name": found.User})
	if owner == nil {
		return nil, nil
	}
	return &token{methods: []string{"application_credential"}, user: *owner, project: s.project(found.Project), roles: s.credentialRoles(found.Roles), appCred: found}, nil
}

// scope gives the token the requested project. It returns false if the user has no role there.
func (s *Sim) scope(t *token, scope any) bool {
	if scope == nil || scope == "unscoped" {
		return true
	}
	p := s.project(cmp.Or(digString(scope, "project", "id"), digString(scope, "project", "name")))
	if p == nil {
		return false
	}
	t.project, t.roles = p, s.impliedRoles(t.user.Roles[p.Name])
	return len(t.roles) > 0
}

// subject is the token that a request is about: the user's own, or any for an administrator.
func (s *Sim) subject(c *call, action string) *token {
	t := s.valid(c.Header.Get("X-Subject-Token"))
	if t == nil {
		panic(identityNotFound(c, "Could not recognize Fernet token"))
	}
	if t.user.ID != c.token.user.ID && !c.token.admin() {
		panic(identityForbidden(c, action))
	}
	return t
}

func (s *Sim) showToken(c *call) reply {
	id := c.Header.Get("X-Subject-Token")
	if id == "" {
		return identityForbidden(c, "identity:validate_token")
	}
	t := s.subject(c, "identity:validate_token")
	return reply{status: http.StatusOK, body: t.view(s, c), header: http.Header{"X-Subject-Token": {id}}}
}

func (s *Sim) revokeToken(c *call) reply {
	delete(s.tokens, s.subject(c, "identity:revoke_token").id)
	return reply{status: http.StatusNoContent}
}

func (s *Sim) showCatalog(c *call) reply {
	if c.token.project == nil {
		return identityForbidden(c, "identity:get_auth_catalog")
	}
	return reply{status: http.StatusOK, body: obj{
		{"catalog", s.catalog(c, c.token.project.ID)},
		{"links", obj{{"self", c.base(identity) + "/v3/auth/catalog"}}},
	}}
}

func (p Project) view(c *call) obj {
	return obj{
		{"id", p.ID},
		{"name", p.Name},
		{"domain_id", "default"},
		{"description", ""},
		{"enabled", true},
		{"parent_id", "default"},
		{"is_domain", false},
		{"tags", []string{}},
		{"options", obj{}},
		{"links", obj{{"self", c.base(identity) + "/v3/projects/" + p.ID}}},
	}
}

func (s *Sim) projectList(c *call, path string, include func(Project) bool) reply {
	list := []obj{}
	for _, p := range s.config.Projects {
		if include(p) {
			list = append(list, p.view(c))
		}
	}
	return reply{status: http.StatusOK, body: obj{
		{"projects", list},
		{"links", obj{{"next", nil}, {"self", c.base(identity) + path}, {"previous", nil}}},
	}}
}

func (s *Sim) listOwnProjects(c *call) reply {
	return s.projectList(c, "/v3/auth/projects", func(p Project) bool { return len(c.token.user.Roles[p.Name]) > 0 })
}

func (s *Sim) listProjects(c *call) reply {
	if !c.token.admin() {
		return identityForbidden(c, "identity:list_projects")
	}
	return s.projectList(c, "/v3/projects", func(Project) bool { return true })
}

func (s *Sim) showProject(c *call) reply {
	p := s.project(c.vars["id"])
	if p == nil || p.ID != c.vars["id"] || !c.token.admin() && (c.token.project == nil || c.token.project.ID != p.ID) {
		return identityForbidden(c, "identity:get_project")
	}
	return reply{status: http.StatusOK, body: obj{{"project", p.view(c)}}}
}
