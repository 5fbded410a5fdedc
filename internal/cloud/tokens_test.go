package cloud

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
)

// A gateway repeats the token that it got. The answer arrives after another request has renewed that token, which Keystone still accepts.
func TestTheTokenOfARequestIsTakenOutOfItsAnswer(t *testing.T) {
	t.Parallel()
	const old, renewed = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"
	escaped := func(token string) string { return strings.ReplaceAll(token, "a", `\u0061`) }
	for name, c := range map[string]struct {
		status int
		body   func(token string) string
	}{
		"a message of a service":        {500, func(token string) string { return `{"fault": {"message": "refused ` + token + `"}}` }},
		"an escaped message":            {400, func(token string) string { return `{"fault": {"message": "refused ` + escaped(token) + `"}}` }},
		"a page":                        {502, func(token string) string { return "<p>" + token + "</p>" }},
		"no JSON":                       {200, func(token string) string { return token }},
		"a text of an object":           {200, func(token string) string { return `{"status": "is ` + token + `"}` }},
		"an escaped text of an object":  {200, func(token string) string { return `{"status": "is ` + escaped(token) + `"}` }},
		"a key of an object":            {200, func(token string) string { return `{"metadata": {"` + token + `": "v"}}` }},
		"a text behind many characters": {200, func(token string) string { return `{"status": "` + strings.Repeat("x", longestText-40) + token + `"}` }},
		"JSON that is decoded later":    {200, func(token string) string { return `{"later": {"status": "is ` + token + `"}}` }},
	} {
		for _, how := range []string{"Send", "Read"} {
			var cloud *Cloud
			k := &keystone{catalog: catalog(), other: func(w http.ResponseWriter, r *http.Request) {
				cloud.provider.SetToken(renewed)
				w.WriteHeader(c.status)
				_, _ = fmt.Fprint(w, c.body(r.Header.Get(tokenHeader)))
			}}
			var err error
			if cloud, err = Connect(t.Context(), k.serve(t), Options{}); err != nil {
				t.Fatal(err)
			}
			client, err := cloud.Client("compute", "")
			if err != nil {
				t.Fatal(err)
			}
			cloud.provider.SetToken(old)
			var answer struct {
				Status   string
				Metadata map[string]string
				Later    json.RawMessage
			}
			if how == "Read" {
				err = cloud.Read(t.Context(), client, client.ServiceURL("x"), &answer, http.StatusOK)
			} else {
				var resp *http.Response
				resp, err = cloud.Send(t.Context(), client, http.MethodGet, client.ServiceURL("x"), &gophercloud.RequestOpts{KeepResponseBody: true})
				if err == nil {
					err = Decode(resp, &answer)
					resp.Body.Close()
				}
			}
			if shown := fmt.Sprintf("%+v %s %v", answer, answer.Later, err); strings.Contains(shown, old[:20]) || strings.Contains(shown, renewed) {
				t.Errorf("%s, %s: %s", name, how, shown)
			}
		}
	}
}
