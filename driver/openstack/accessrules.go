package openstack

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// AccessRule allows the user of an application credential one kind of request (Identity API reference, "Application Credentials",
// access_rules). In JSON it is what `openstack application credential create --access-rules` takes.
type AccessRule struct {
	Service string `json:"service"` // the service's own name: [keystone_authtoken] service_type
	Method  string `json:"method"`
	Path    string `json:"path"` // "*" stands for one segment, "**" for one or more
}

// String is the rule as one line of text.
func (r AccessRule) String() string { return r.Service + " " + r.Method + " " + r.Path }

// services are the names and paths that the middleware for access rules sees: Cinder's old type, and the start of the paths in the catalog.
// The path of Cinder contains the project id.
var services = map[string]struct{ name, path string }{
	"block-storage": {"volumev3", "/v3/*"},
	"compute":       {"compute", "/v2.1"},
}

// ruleOf is the rule that allows a call and nothing else. Rules do not contain microversions.
func ruleOf(c cloud.Call) AccessRule {
	s := services[c.Service]
	return AccessRule{Service: s.name, Method: c.Method, Path: s.path + variable.ReplaceAllString(c.Path, "*")}
}

// allows reports whether the rule allows everything that the other allows.
func (r AccessRule) allows(other AccessRule) bool {
	if r.Service != other.Service || r.Method != other.Method {
		return false
	}
	mine, its := strings.Split(r.Path, "/"), strings.Split(other.Path, "/")
	return slices.EqualFunc(mine, its, func(a, b string) bool { return a == b || a == "*" })
}

// AccessRules are the fewest rules that allow all Calls. A rule for /volumes/* also allows /volumes/detail. A login needs no rule.
func AccessRules() []AccessRule {
	var rules []AccessRule
	for _, call := range Calls {
		rules = append(rules, ruleOf(call))
	}
	slices.SortFunc(rules, func(a, b AccessRule) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method))
	})
	rules = slices.Compact(rules)
	return slices.DeleteFunc(slices.Clone(rules), func(r AccessRule) bool {
		return slices.ContainsFunc(rules, func(wider AccessRule) bool { return wider != r && wider.allows(r) })
	})
}

// missingRule is the rule of AccessRules that allows a call.
func missingRule(c cloud.Call) AccessRule {
	its := ruleOf(c)
	for _, r := range AccessRules() {
		if r.allows(its) {
			return r
		}
	}
	return its
}
