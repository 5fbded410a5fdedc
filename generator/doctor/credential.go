package doctor

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/generator/inspect"
	"github.com/cinder-csi/cinder-csi/internal/pages"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// token is how Keystone describes the token in use.
type token struct {
	User struct {
		ID              string `json:"id"`
		Name            string `json:"name"`
		PasswordExpires string `json:"password_expires_at"`
	} `json:"user"`
	Project struct {
		Name string `json:"name"`
	} `json:"project"`
	Roles []struct {
		Name string `json:"name"`
	} `json:"roles"`
	Credential *struct {
		ID          string       `json:"id"`
		Name        string       `json:"name"`
		Restricted  bool         `json:"restricted"`
		AccessRules []accessRule `json:"access_rules"`
	} `json:"application_credential"`
}

// accessRule is a rule as Keystone and docs/reference/access-rules.md have it.
type accessRule struct {
	Service string `json:"service"`
	Method  string `json:"method"`
	Path    string `json:"path"`
}

func (r accessRule) String() string { return r.Service + " " + r.Method + " " + r.Path }

// AccessRules is the JSON of docs/reference/access-rules.md; the tests of docs write it.
//
//go:embed access-rules.json
var AccessRules []byte

func (c *cloudCheck) checkCredential(ctx context.Context) {
	var body struct {
		Token token `json:"token"`
	}
	if err := c.get(ctx, "identity", "", "auth/tokens", &body); err != nil {
		_, reason := inspect.StateOf(err)
		c.report.ok("cloud.login", "Keystone at %s accepts the credentials", c.cloud.AuthURL())
		c.report.notChecked("the roles, the access rules and the expiry of the credential", "Keystone does not show the token: "+reason, "ask its owner for them")
		return
	}
	t := body.Token
	c.withoutRules = t.Credential == nil || len(t.Credential.AccessRules) == 0
	c.report.ok("cloud.login", "user %s is logged in to project %s (%s)", t.User.Name, t.Project.Name, c.cloud.ProjectID())
	before := len(c.report.Findings)
	c.checkRoles(t)
	if t.Credential == nil {
		c.checkPassword(t)
	} else {
		c.checkApplicationCredential(ctx, t)
		c.checkAccessRules(t.Credential.AccessRules)
	}
	if !slices.ContainsFunc(c.report.Findings[before:], func(f Finding) bool { return f.ID == "cloud.credential" }) {
		c.report.ok("cloud.credential", "the credential does not expire soon, and has no role that the driver does not need")
	}
}

// checkRoles judges the writing requests by roles: no request shows a policy without a change.
func (c *cloudCheck) checkRoles(t token) {
	var roles []string
	for _, r := range t.Roles {
		roles = append(roles, r.Name)
	}
	slices.Sort(roles)
	switch {
	case slices.Contains(roles, "admin"):
		c.report.add("cloud.credential", Warning, "the token has the role admin", "somebody who reads the Secret could change every project of the cloud", "use a credential with the role member")
		c.report.ok("cloud.rights.write", "the role admin may create, attach and delete volumes")
	case slices.Contains(roles, "member"):
		c.report.ok("cloud.rights.write", "the role member may create, attach and delete volumes by the usual policies")
	case slices.Equal(roles, []string{"reader"}):
		c.report.add("cloud.rights.write", Error, "the only role of the token is reader", "with default policies, Nova since 2023.1 and Cinder since 2026.2 refuse a reader what the driver does with volumes; only older ones allow it",
			"use a credential with the role member for the driver; reader is enough for inspect, plan and doctor. Only access rules make a credential read-only everywhere")
	default:
		c.report.add("cloud.rights.write", Warning, "the token has the roles "+list(roles)+", and not member", "the usual policies let only members create, attach and delete volumes",
			"ask the operator of the cloud whether one of these roles may")
	}
	c.report.notChecked("whether own policies of the cloud forbid a writing request (create, attach, extend, delete)", "only a change would show it, and doctor changes nothing",
		"create, attach and delete a small volume once: openstack volume create --size 1 doctor-test")
}

func (c *cloudCheck) checkPassword(t token) {
	if t.User.PasswordExpires == "" {
		return
	}
	c.checkExpiryOf("the password of user "+t.User.Name, t.User.PasswordExpires, "set a new password, and put it into the Secret")
}

func (c *cloudCheck) checkApplicationCredential(ctx context.Context, t token) {
	a := t.Credential
	if !a.Restricted {
		c.report.add("cloud.credential", Warning, fmt.Sprintf("application credential %s is unrestricted", a.Name),
			"somebody who reads the Secret could create more credentials for this user", "create one without --unrestricted")
	}
	var body struct {
		Credential struct {
			Expires string `json:"expires_at"`
		} `json:"application_credential"`
	}
	err := c.get(ctx, "identity", "", "users/"+url.PathEscape(t.User.ID)+"/application_credentials/"+url.PathEscape(a.ID), &body)
	if err != nil {
		_, reason := inspect.StateOf(err)
		c.report.notChecked("when the application credential "+a.Name+" expires", "Keystone does not show it to this credential: "+reason, "as its owner: openstack application credential show "+shell.Name(a.ID, "ID"))
		return
	}
	if body.Credential.Expires != "" {
		c.checkExpiryOf("application credential "+a.Name, body.Credential.Expires, "create a new one, and replace the Secret ("+pages.RotateCredentials.String()+")")
	}
}

// checkExpiryOf reads a time as Keystone writes it: in UTC, with microseconds, and with or without a Z.
func (c *cloudCheck) checkExpiryOf(what, text, do string) {
	at, err := time.Parse("2006-01-02T15:04:05", strings.TrimSuffix(text, "Z"))
	if err != nil {
		c.report.notChecked("when "+what+" expires", "the time "+text+" cannot be read", "ask its owner")
		return
	}
	if severity, soon := expires(at, c.traffic.Now()); soon {
		c.report.add("cloud.credential", severity, what+" expires at "+stamp(at), "afterwards no volume can be created, attached or detached", do)
	}
}

func (c *cloudCheck) checkAccessRules(have []accessRule) {
	if len(have) == 0 {
		c.report.ok("cloud.access-rules", "the application credential has no access rules, so none is missing")
		return
	}
	var wanted []accessRule
	if err := json.Unmarshal(AccessRules, &wanted); err != nil {
		panic(err) // the file is part of this program
	}
	var missing []string
	for _, want := range wanted {
		if !slices.ContainsFunc(have, func(r accessRule) bool { return r.allows(want) }) {
			missing = append(missing, want.String())
		}
	}
	if len(missing) == 0 {
		c.report.ok("cloud.access-rules", "the access rules of the credential allow every request of the driver")
		return
	}
	c.report.add("cloud.access-rules", Error, fmt.Sprintf("%d access rules are missing: %s", len(missing), strings.Join(missing, "; ")),
		"Cinder and Nova refuse those requests with HTTP 401", "rules of a credential cannot change: create a new one ("+pages.AccessRules.String()+")")
}

// blockStorageNames are the names that Cinder's service_type may have.
var blockStorageNames = []string{"volumev3", "block-storage", "block-store", "volume"}

var ruleToken = regexp.MustCompile(`\{[^}]*\}|\*\*|\*|[^{}*]+`)

// allows reports whether the rule allows every path of another one. A "*" of the other stands for some segment. The name of the
// service is compared loosely: if it is wrong, Cinder refuses the reading requests too.
func (r accessRule) allows(want accessRule) bool {
	cinder := slices.Contains(blockStorageNames, r.Service) && slices.Contains(blockStorageNames, want.Service)
	if r.Method != want.Method || r.Service != want.Service && !cinder {
		return false
	}
	var pattern strings.Builder
	for _, part := range ruleToken.FindAllString(r.Path, -1) {
		switch {
		case part == "**":
			pattern.WriteString(".*")
		case part == "*" || part[0] == '{':
			pattern.WriteString("[^/]+")
		default:
			pattern.WriteString(regexp.QuoteMeta(part))
		}
	}
	matched, err := regexp.MatchString("^"+pattern.String()+"$", strings.ReplaceAll(want.Path, "*", "any"))
	return err == nil && matched
}
