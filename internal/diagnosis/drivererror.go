package diagnosis

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// errorCause gives a kind of error its cause and advice. Empty fields match any.
type errorCause struct {
	step, code, text, cause string
	state                   State
	do                      []string
}

// errorCauses are the errors of the driver (driver/rpc/codes.go has the codes, driver/openstack/error.go and the domain the texts). The
// first that matches decides.
var errorCauses = []errorCause{
	{"", "Unauthenticated", "", "cloud.credentials", Failed, credentialAdvice},
	{"", "", "refuses the credentials", "cloud.credentials", Failed, credentialAdvice},
	{"", "", "Keystone refused a new token", "cloud.credentials", Failed, credentialAdvice},                       // Unavailable after a write: see codesByKind
	{"", "PermissionDenied", "carries the mark of cluster", "volume.other-cluster", Failed, otherClusterAdvice},   // driver/ownership
	{"", "PermissionDenied", "--protect-other-clusters", "volume.other-cluster", Failed, otherClusterAdvice},      // driver/ownership
	{"", "PermissionDenied", "a token that Keystone has just issued", "cloud.token-refused", Failed, tokenAdvice}, // driver/openstack/error.go
	{"", "PermissionDenied", "", "cloud.rights", Failed, []string{"give the user a role or the access rule that the error names: " + accessRulesPage, cloudDoctor}},
	{"", "", "unknown authority", "cloud.unreachable", Failed, caAdvice},
	{"", "", "CA file", "cloud.unreachable", Failed, caAdvice},
	{"", "Unavailable", "", "cloud.unreachable", Waiting, []string{
		"the driver retries; check DNS, proxy and firewall between the controller pods and the cloud, and ask its operator", cloudDoctor,
	}},
	{stepCreate, "", "uota", "create.quota", Failed, quotaAdvice},
	{stepCreate, "", "maximum allowed", "create.quota", Failed, quotaAdvice},
	{stepCreate, "", "olume type", "create.type", Failed, []string{
		"correct the parameter type of the StorageClass: delete the class and create it again, and then the claim", run("openstack", "volume", "type", "list"), run("kubectl", "get", "storageclass", "--output", "yaml"),
	}},
	{stepCreate, "", "no volume zone", "create.no-backend", Failed, zoneAdvice},
	{stepCreate, "", "vailability zone", "create.no-backend", Failed, zoneAdvice},
	{stepCreate, "", "No valid backend", "create.no-backend", Failed, zoneAdvice},
	// The scheduler says the same after a backend has failed; then the driver adds the reason of the backend.
	{stepCreate, "", "weighted backend; the driver deleted", "create.no-backend", Failed, zoneAdvice},
	{stepCreate, "", "weighted backend.; the driver deleted", "create.no-backend", Failed, zoneAdvice},
	{stepCreate, "", "could not create volume", "create.error", Failed, []string{"give the request IDs to the operator of the cloud; the driver tries again"}},
	{stepCreate, "Aborted", "", "create.waiting", Waiting, []string{"wait; the driver tries again"}},
	{stepCreate, "DeadlineExceeded", "", "create.waiting", Waiting, []string{"wait; the driver tries again. If it stays, ask the operator of the cloud why Cinder is slow"}},
	{stepCreate, "", "", "create.refused", Failed, []string{"correct what the error names"}},
	{stepAttach, "ResourceExhausted", "", "attach.limit", Failed, []string{"add a node, or move pods with volumes from this node"}},
	{stepAttach, "", "is attached to", "attach.elsewhere", Failed, nil},
	{stepAttach, "", "is in status error", "volume.error", Failed, nil},
	{stepAttach, "", "", "attach.error", Failed, nil},
	{stepExpand, "", "", "expand.error", Failed, nil},
	{stepModify, "", "", "modify.error", Failed, nil},
	{stepDelete, "", "", "delete.error", Failed, nil},
	{stepDetach, "", "", "detach.stuck", Failed, nil},
}

var (
	cloudDoctor     = run("cinder-csi-generator", "doctor", "--skip-cluster")
	accessRulesPage = strings.Replace(page("access-rules.md"), "how-to", "reference", 1)

	credentialAdvice = []string{
		"correct the Secret with clouds.yaml; the driver reads it again without a restart: " + page("rotate-credentials.md"),
		"if the credentials are right, a clock may be wrong: " + page("troubleshoot.md#a-clock-is-wrong") + ". This checks the login and compares the clocks:", cloudDoctor,
	}
	tokenAdvice = []string{
		"if the application credential of the driver has access rules, create a new one with the rule that the error names: " + accessRulesPage,
		"if it has none, or the rule is among them, a clock is wrong: " + page("troubleshoot.md#a-clock-is-wrong") + ". This compares the rules and the clocks:", cloudDoctor,
	}
	caAdvice = []string{
		"the driver does not trust the certificate of the cloud. Put the CA of the cloud into its place; no pod restarts: " + page("rotate-credentials.md") + "#the-ca-changed", cloudDoctor,
	}
	otherClusterAdvice = []string{
		"if the other cluster still exists, leave the volume to it. If it is lost, change the mark; this prints the commands: " + page("recover-a-cluster.md") + "#with-another-cluster-id",
		run("kubectl", "cinder", "recover", "--cluster-id", "OLD", "--new-cluster-id", "NEW", "--output", "commands", "--os-cloud", "CLOUD"),
	}
	quotaAdvice = []string{"delete volumes that nobody needs, or have the operator of the cloud raise the quota; the driver then succeeds by itself", run("openstack", "quota", "show", "--volume", "--usage")}
	zoneAdvice  = []string{
		"Cinder finds no place for the volume: choose another zone or type, or have the operator of the cloud add capacity", run("openstack", "availability", "zone", "list", "--volume"), run("openstack", "volume", "type", "list"),
	}
)

var (
	rpcError  = regexp.MustCompile(`rpc error: code = (\w+) desc = ((?s).*)`)
	requestID = regexp.MustCompile(`req-[0-9a-f]{8}-[0-9a-f-]{27}`)
)

// splitError splits an error of the driver into its gRPC code and its message. The code is empty if the text has none.
func splitError(text string) (code, message string) {
	if m := rpcError.FindStringSubmatch(text); m != nil {
		return m[1], m[2]
	}
	return "", text
}

// readable is an error of the driver for people.
func readable(text string) string {
	if code, message := splitError(text); code != "" {
		return code + ": " + message
	}
	return text
}

// driverError hangs the story with an error of the driver. The advice of the caller counts where the table has none. The operation may be
// nil; it knows the request IDs of the writes.
func (s *story) driverError(name, what string, began time.Time, text string, o *Operation, advice ...string) {
	code, message := splitError(text)
	for _, c := range errorCauses {
		if c.step != "" && c.step != name || c.code != "" && c.code != code || !strings.Contains(message, c.text) {
			continue
		}
		step := Step{Name: name, State: c.state, What: what, Since: since(began), Why: readable(text), Do: slices.Clone(c.do)}
		if o != nil {
			step.Requests = o.Requests
		}
		if c.cause == "create.quota" {
			step.Why = sentence(step.Why, s.fullQuotas())
		}
		if c.do == nil {
			step.Do = advice
		}
		s.hang(c.cause, step)
		return
	}
}

// requestsIn adds the OpenStack request IDs of a text to those that are known.
func requestsIn(text string, known []string) []string {
	for _, id := range requestID.FindAllString(text, -1) {
		if !slices.Contains(known, id) {
			known = append(slices.Clone(known), id)
		}
	}
	return known
}

// age is a duration for people.
func age(d time.Duration) string {
	switch d = d.Round(time.Second); {
	case d < 2*time.Minute:
		return d.String()
	case d < 2*time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return strings.TrimSuffix(d.Round(time.Hour).String(), "0m0s")
}
