package cluster

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

func TestTheRightOfAnAccountIsAskedForWithItsGroups(t *testing.T) {
	var asked testenv.Asked
	status, answer := http.StatusCreated, ""
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked.Add(r.Method + " " + r.URL.Path + " " + string(body))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	})
	right := authorizationv1.ResourceAttributes{Verb: "use", Group: "security.openshift.io", Resource: "securitycontextconstraints", Name: "privileged", Namespace: "ns"}
	for text, want := range map[string]bool{`{"status": {"allowed": true}}`: true, `{"status": {"allowed": false}}`: false, `{}`: false} {
		answer = text
		if got, err := c.May(t.Context(), "ns", "node", right); err != nil || got != want {
			t.Errorf("%s: want %t, got %t, %v", text, want, got, err)
		}
	}
	const want = `POST /prefix/apis/authorization.k8s.io/v1/subjectaccessreviews {"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},` +
		`"spec":{"resourceAttributes":{"namespace":"ns","verb":"use","group":"security.openshift.io","resource":"securitycontextconstraints","name":"privileged"},` +
		`"user":"system:serviceaccount:ns:node","groups":["system:serviceaccounts","system:serviceaccounts:ns","system:authenticated"]},"status":{"allowed":false}}`
	if diff := cmp.Diff(want, asked.All()[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	status = http.StatusForbidden
	if _, err := c.May(t.Context(), "ns", "node", right); !errors.Is(err, ErrDenied) {
		t.Errorf("want ErrDenied, got %v", err)
	}
}
