package openstack

import (
	"regexp"
	"slices"
	"testing"
)

func TestEveryCallHasItsRuleAndEveryRuleItsCall(t *testing.T) {
	t.Parallel()
	rules := AccessRules()
	for _, call := range Calls {
		if !slices.ContainsFunc(rules, func(r AccessRule) bool { return r.allows(ruleOf(call)) }) {
			t.Errorf("%s %s is in no rule", call.Method, call.Path)
		}
	}
	shape := regexp.MustCompile(`^(volumev3 (GET|POST|PUT|DELETE) /v3/\*|compute (GET|POST|PUT|DELETE) /v2\.1)(/[a-z_-]+|/\*)+$`)
	seen := map[AccessRule]bool{}
	for _, rule := range rules {
		if seen[rule] {
			t.Errorf("%s is there twice", rule)
		}
		seen[rule] = true
		for _, other := range rules {
			if other != rule && other.allows(rule) {
				t.Errorf("%s is not needed beside %s", rule, other)
			}
		}
		if !shape.MatchString(rule.String()) {
			t.Errorf("%s is not what Keystone's middleware matches, or allows too much", rule)
		}
	}
	if len(rules) < 12 || len(rules) >= len(Calls) {
		t.Errorf("%d rules for %d calls: microversions must not count", len(rules), len(Calls))
	}
}
