package doctor

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

// With a Keystone whose clock is a day behind, every token is expired for Cinder and Nova. Their middleware answers that with the same 401 as a
// missing access rule, so only the token and the clocks show which it is.
func TestTheAdviceAboutARefusedTokenNamesTheCauseThatTheTokenAllows(t *testing.T) {
	const rule, clock = "the access rule is missing", "A clock is wrong"
	short := []openstacksim.AccessRule{{Service: "compute", Method: "GET", Path: "/v2.1/**"}, {Service: "volumev3", Method: "GET", Path: "/v3/"}}
	for name, c := range map[string]struct {
		fault        func(*bed)
		want, refuse []string
	}{
		"a clock, and a user with a password": {
			func(b *bed) { b.behind() }, []string{clock}, []string{rule},
		},
		"a clock, and a credential without access rules": {
			func(b *bed) { b.behind(); b.credential(openstacksim.ApplicationCredential{}) }, []string{clock}, []string{rule},
		},
		"a clock, and a credential with every access rule": {
			func(b *bed) {
				b.behind()
				b.credential(openstacksim.ApplicationCredential{AccessRules: documentedRules(t)})
			}, []string{clock}, nil,
		},
		"access rules are missing": {
			func(b *bed) { b.credential(openstacksim.ApplicationCredential{AccessRules: short}) }, []string{rule, clock}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			c.fault(b)
			r := b.report()
			seen := 0
			for _, f := range r.Findings {
				if f.ID != "cloud.rights.read" && f.ID != "cloud.types" || f.Severity == OK {
					continue
				}
				seen++
				for _, want := range c.want {
					if !strings.Contains(f.Do, want) {
						t.Errorf("want advice with %q, got %+v", want, f)
					}
				}
				for _, text := range c.refuse {
					if strings.Contains(f.Do, text) {
						t.Errorf("want no advice with %q, got %+v", text, f)
					}
				}
				if at := strings.Index(f.Do, rule); at > 0 && at > strings.Index(f.Do, clock) {
					t.Errorf("want the access rule before the clock, got %+v", f)
				}
			}
			if seen < 2 {
				t.Errorf("want findings about rights and types, got %+v", r.Findings)
			}
		})
	}
}

// behind sets the clock of Keystone a day back, and has Cinder and Nova refuse its tokens as their middleware does.
func (b *bed) behind() {
	b.skew(-24 * time.Hour)
	for _, path := range []string{"/volume/v3/**", "/compute/v2.1/**"} {
		b.sim.SetFault(openstacksim.Fault{Path: path, Status: http.StatusUnauthorized})
	}
}
