package openstacksim

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

type token struct {
	id, audit       string
	methods         []string
	user            User
	project         *Project // nil: not scoped
	roles           []string
	issued, expires time.Time
	appCred         *ApplicationCredential
}

// admin reports whether the token has the role that the policies of Cinder and Nova require.
func (t *token) admin() bool { return t.has("admin") }

func (t *token) has(role string) bool { return slices.Contains(t.roles, role) }

// SetTokenLifetime sets how long tokens issued from now on are valid.
func (s *Sim) SetTokenLifetime(d time.Duration) { assign(s, &s.config.TokenLifetime, d) }

// RevokeTokens makes every token issued so far invalid, as the loss of a Fernet key does.
func (s *Sim) RevokeTokens() {
	defer s.lock()()
	clear(s.tokens)
}

// valid finds a token that is still valid.
func (s *Sim) valid(id string) *token {
	t := s.tokens[strings.TrimSpace(id)]
	if t == nil || !time.Now().Before(t.expires) || t.appCred != nil && t.appCred.spent {
		return nil
	}
	return t
}

// authenticate does what the Keystone middleware does before a service. A refusal is always 401, also for access rules.
func (s *Sim) authenticate(c *call, serviceType string) *reply {
	t := s.valid(c.Header.Get("X-Auth-Token"))
	if t == nil || !t.allows(c, serviceType) {
		return &reply{
			status: http.StatusUnauthorized,
			body:   obj{{"error", obj{{"code", 401}, {"title", "Unauthorized"}, {"message", "The request you have made requires authentication."}}}},
			header: http.Header{"Www-Authenticate": {`Keystone uri="` + c.base(identity) + `/v3"`}},
		}
	}
	c.token = t
	return nil
}

// allows checks a request against the access rules of the application credential.
func (t *token) allows(c *call, serviceType string) bool {
	if t.appCred == nil || len(t.appCred.AccessRules) == 0 {
		return true
	}
	if serviceType == "" {
		return false
	}
	if c.service == identity && c.Method == http.MethodGet && strings.HasSuffix(c.path, "/v3/auth/tokens") {
		return true
	}
	return slices.ContainsFunc(t.appCred.AccessRules, func(r AccessRule) bool {
		return r.Method == c.Method && r.Service == serviceType && ruleMatches(r.Path, c.path)
	})
}

var ruleToken = regexp.MustCompile(`\{[^}]*\}|\*\*|\*|[^{}*]+`)

func ruleMatches(rule, path string) bool {
	var b strings.Builder
	for _, part := range ruleToken.FindAllString(rule, -1) {
		switch {
		case part == "**":
			b.WriteString(".*")
		case part == "*" || part[0] == '{':
			b.WriteString(`[^/]+`)
		default:
			b.WriteString(regexp.QuoteMeta(part))
		}
	}
	return regexp.MustCompile("^" + b.String() + "$").MatchString(path)
}

// issue makes a token. Roles imply others, as Keystone sets up: admin implies member, member implies reader.
func (s *Sim) issue(t token) *token {
	t.id = "gAAAAA" + base64.RawURLEncoding.EncodeToString(s.random(96))
	t.audit = base64.RawURLEncoding.EncodeToString(s.random(16))
	t.issued = time.Now().UTC().Truncate(time.Second)
	t.expires = cmp.Or(t.expires, t.issued.Add(s.config.TokenLifetime))
	s.tokens[t.id] = &t
	return &t
}

// impliedRoles adds the roles that others imply. Releases after Zed have the role manager between admin and member.
func (s *Sim) impliedRoles(roles []string) []string {
	order := []string{"reader", "member", "admin"}
	if s.afterZed() {
		order = []string{"reader", "member", "manager", "admin"}
	}
	highest := -1
	for i, r := range order {
		if slices.Contains(roles, r) {
			highest = i
		}
	}
	return order[:highest+1]
}

// credentialRoles are the roles in a token of an application credential. Keystone of Zed has only those that it was made with. The one of
// Epoxy adds those that they imply.
func (s *Sim) credentialRoles(roles []string) []string {
	if s.afterZed() {
		return s.impliedRoles(roles)
	}
	return roles
}

var defaultDomain = obj{{"id", "default"}, {"name", "Default"}}

// view is the token in a reply of Keystone.
func (t *token) view(s *Sim, c *call) obj {
	v := obj{
		{"methods", t.methods},
		{"user", obj{{"domain", defaultDomain}, {"id", t.user.ID}, {"name", t.user.Name}, {"password_expires_at", nil}}},
		{"audit_ids", []string{t.audit}},
		{"expires_at", micros(t.expires) + "Z"},
		{"issued_at", micros(t.issued) + "Z"},
	}
	if t.project == nil {
		return obj{{"token", v}}
	}
	var roles []obj
	for _, r := range t.roles {
		roles = append(roles, obj{{"id", FixedHex("role", r)}, {"name", r}})
	}
	v = append(v, pair{"project", obj{{"domain", defaultDomain}, {"id", t.project.ID}, {"name", t.project.Name}}},
		pair{"is_domain", false}, pair{"roles", roles}, pair{"catalog", s.catalog(c, t.project.ID)})
	if a := t.appCred; a != nil {
		cred := obj{{"id", a.ID}, {"name", a.Name}, {"restricted", !a.Unrestricted}}
		cred = cred.when(len(a.AccessRules) > 0, pair{"access_rules", a.rules()})
		v = append(v, pair{"application_credential", cred})
	}
	return obj{{"token", v}}
}

func (a *ApplicationCredential) rules() []obj {
	rules := make([]obj, 0, len(a.AccessRules))
	for i, r := range a.AccessRules {
		id := FixedHex("access-rule", a.ID+"/"+string(rune('a'+i)))
		rules = append(rules, obj{{"id", id}, {"service", r.Service}, {"path", r.Path}, {"method", r.Method}})
	}
	return rules
}
