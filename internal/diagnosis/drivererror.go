package diagnosis

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/internal/pages"
)

// olderCause gives the cause of an error whose text has no ID.
type olderCause struct {
	step, code, text string // empty fields match any
	cause            cause.ID
}

// olderCauses are for the errors of drivers that name no cause: that of upstream, and ours before 0.1. The first that matches decides. Only code and
// step of most rows matter; a text is one of upstream. This list ends with version 0.4: then the last rows of each step are enough.
var olderCauses = []olderCause{
	{stepMount, "", "", cause.MountError},
	{"", "Unauthenticated", "", cause.CloudCredentials},
	{"", "PermissionDenied", "", cause.CloudRights},
	{"", "Unavailable", "", cause.CloudUnreachable},
	{stepCreate, "", "uota", cause.QuotaExceeded},
	{stepCreate, "Aborted", "", cause.CreateWaiting},
	{stepCreate, "DeadlineExceeded", "", cause.CreateWaiting},
	{stepCreate, "", "", cause.CreateRefused},
	{stepAttach, "ResourceExhausted", "", cause.AttachLimit},
	{stepAttach, "", "", cause.AttachError},
	{stepExpand, "", "", cause.ExpandError},
	{stepModify, "", "", cause.ModifyError},
	{stepDelete, "", "", cause.DeleteError},
}

func causeOf(name, text string) cause.ID {
	if id := cause.In(text); id != "" {
		return id
	}
	code, message := splitError(text)
	for _, c := range olderCauses {
		if (c.step == "" || c.step == name) && (c.code == "" || c.code == code) && strings.Contains(message, c.text) {
			return c.cause
		}
	}
	return cause.DriverDefect
}

var (
	cloudDoctor = run("cinder-csi-generator", "doctor", "--skip-cluster")

	credentialAdvice = []string{
		"correct the Secret with clouds.yaml; the driver reads it again without a restart: " + pages.RotateCredentials.String(),
		"if the credentials are right, a clock may be wrong: " + pages.ClockIsWrong.String() + ". This checks the login and compares the clocks:", cloudDoctor,
	}
	tokenAdvice = []string{
		"if the application credential of the driver has access rules, create a new one with the rule that the error names: " + pages.AccessRules.String(),
		"if it has none, or the rule is among them, a clock is wrong: " + pages.ClockIsWrong.String() + ". This compares the rules and the clocks:", cloudDoctor,
	}
	caAdvice = []string{
		"the driver does not trust the certificate of the cloud. Put the CA of the cloud into its place; no pod restarts: " + pages.CAChanged.String(), cloudDoctor,
	}
	otherClusterAdvice = []string{
		"if the other cluster still exists, leave the volume to it. If it is lost, change the mark; this prints the commands: " + pages.AnotherClusterID.String(),
		run("kubectl", "cinder", "recover", "--cluster-id", "OLD", "--new-cluster-id", "NEW", "--output", "commands"),
	}
	quotaAdvice = []string{"claim less, delete volumes that nobody needs, or have the operator of the cloud raise the quota; the driver then succeeds by itself", run("openstack", "limits", "show", "--absolute")}
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

// adviceOf is what to do about a cause, with commands. The table of causes has a sentence for the others.
var adviceOf = map[cause.ID][]string{
	cause.CloudCredentials:   credentialAdvice,
	cause.CloudRights:        {"give the user a role or the access rule that the error names: " + pages.AccessRules.String(), cloudDoctor},
	cause.CloudTokenRefused:  tokenAdvice,
	cause.CloudCertificate:   caAdvice,
	cause.CloudSettings:      {"correct the setting that the error names; no pod restarts: " + pages.RotateCredentials.String(), cloudDoctor},
	cause.CloudUnreachable:   {"the driver retries; check DNS, proxy and firewall between the controller pods and the cloud, and ask its operator", cloudDoctor},
	cause.VolumeOtherCluster: otherClusterAdvice,
	cause.QuotaVolumes:       quotaAdvice, cause.QuotaGigabytes: quotaAdvice, cause.QuotaSnapshots: quotaAdvice, cause.QuotaBackups: quotaAdvice, cause.QuotaExceeded: quotaAdvice,
	cause.CreateZone: zoneAdvice, cause.CreateNoBackend: zoneAdvice,
	cause.CreateType: {
		meaningOf(cause.CreateType).Do, run("openstack", "volume", "type", "list"), run("kubectl", "get", "storageclass", "--output", "yaml"),
	},
	cause.AttachLimit: {"add a node, or move pods with volumes from this node"},
	cause.CreateError: {"give the request IDs to the operator of the cloud; the driver tries again"},
}

func meaningOf(id cause.ID) cause.Cause {
	row, _ := cause.Find(id)
	return row
}

// driverError stops the walk with an error of the driver. The advice of the caller counts where the cause has none with commands. The operation may be
// nil; it knows the request IDs of the writes.
func (s *walk) driverError(name, what string, began time.Time, text string, o *Operation, advice ...string) {
	id := causeOf(name, text)
	row := meaningOf(id)
	step := Step{Name: name, State: Failed, What: what, Since: since(began), Why: readable(text), Do: slices.Clone(adviceOf[id])}
	if row.Passes {
		step.State = Waiting
	}
	if o != nil {
		step.Requests = o.Requests
	}
	if strings.HasPrefix(string(id), "quota.") && s.Claim != nil {
		step.Why = sentence(step.Why, s.fullQuotas())
	}
	if id == cause.CreateZone && strings.Contains(text, "; the source, ") {
		step.Do = slices.Insert(step.Do, 0, "Cinder makes the copy only in the zone of its source, which the error names: "+pages.Restore.String())
	}
	if step.Do == nil {
		step.Do = append([]string{row.Do}, advice...)
	}
	s.stop(id, step)
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
