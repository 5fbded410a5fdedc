package anatomy

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// auditOf writes calls as "SECOND USER VERB RESOURCE/NAME[/SUBRESOURCE]", one in a line. Each takes no time.
func auditOf(t *testing.T, text string) Audit {
	t.Helper()
	var all Audit
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != 4 {
			t.Fatalf("line %q", line)
		}
		seconds, err := time.ParseDuration(fields[0] + "s")
		if err != nil {
			t.Fatal(err)
		}
		c := Call{Verb: fields[2], Received: noon.Add(seconds), Answered: noon.Add(seconds)}
		c.User.Username = fields[1]
		ref := append(strings.Split(fields[3], "/"), "")
		c.ObjectRef.Resource, c.ObjectRef.Name, c.ObjectRef.Subresource = ref[0], ref[1], ref[2]
		all = append(all, c)
	}
	return all
}

const attachAudit = `12 sa:attachdetach-controller create volumeattachments/va
15 attacher patch volumeattachments/va/status
11 system:node:other patch nodes/other/status
16 sa:attachdetach-controller patch nodes/n/status
16.5 system:node:n patch nodes/n/status
17.2 system:node:n patch nodes/n/status
17.5 system:node:n patch pods/p/status
21 system:node:n patch pods/p/status
50 attacher patch volumeattachments/va/status
60 system:node:n patch pods/p/status
`

// attachRPCs are the calls of the driver from the attach on.
func attachRPCs() []RPC {
	return []RPC{
		{"ControllerPublishVolume", "h", at(13), at(14.5), false},
		{"NodeStageVolume", "h", at(18), at(18.5), false},
		{"NodePublishVolume", "h", at(19), at(19.5), false},
	}
}

var attachParts = []Part{
	{Controllers, "attach requested", 2},
	{Sidecars, "attacher calls", 1},
	{Cloud, "attached in the cloud", 1},
	{Driver, "attached", 0.5},
	{Sidecars, "VolumeAttachment says attached", 0.5},
	{Controllers, "node says attached", 1},
	{KubeletWait, "kubelet reports that the volume is in use", 0.5},
	{KubeletWait, "kubelet sees it", 1.5},
	{NodeDriver, "staged", 0.5},
	{Kubelet, "kubelet publishes", 0.5},
	{NodeDriver, "published", 0.5},
	{Kubelet, "container started, pod ready", 1.5},
}

func TestAStartIsCutIntoTheTimeOfEachLayer(t *testing.T) {
	records := Records{
		Audit: auditOf(t, `0 admin create pods/p
1 system:kube-scheduler update persistentvolumeclaims/c
7 provisioner create persistentvolumes/v
8 sa:persistent-volume-binder update persistentvolumeclaims/c/status
10 system:kube-scheduler create pods/p/binding
`+attachAudit),
		// The first attempt fails, and the second finds the volume.
		RPCs: append([]RPC{{"CreateVolume", "v", at(2), at(3), true}, {"CreateVolume", "v", at(4), at(6), false}}, attachRPCs()...),
		Work: []Work{{"create", "h", at(5)}, {"attach", "h", at(14)}, {"attach", "other", at(99)}},
	}
	got, err := records.Start(Pod{Name: "p", Node: "n", Claim: "c", Volume: "v", Handle: "h", Attachment: "va", Ready: at(20)})
	if err != nil {
		t.Fatal(err)
	}
	want := append([]Part{
		{Scheduler, "node chosen for the claim", 1},
		{Sidecars, "provisioner calls", 1},
		{Driver, "volume created", 1},
		{Sidecars, "provisioner calls", 1},
		{Cloud, "volume created in the cloud", 1},
		{Driver, "volume created", 1},
		{Sidecars, "PersistentVolume written", 1},
		{Controllers, "claim bound", 1},
		{Scheduler, "pod bound to the node", 2},
	}, attachParts...)
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAMoveBeginsWithTheOldPod(t *testing.T) {
	records := Records{
		Audit: auditOf(t, `0 admin delete pods/old
4 system:node:m patch nodes/m/status
5 sa:attachdetach-controller delete volumeattachments/va-old
9 attacher patch volumeattachments/va-old
10 system:kube-scheduler create pods/p/binding
`+attachAudit),
		RPCs: append([]RPC{
			{"NodeUnpublishVolume", "h", at(1), at(1.5), false},
			{"NodeUnstageVolume", "h", at(2), at(2.5), false},
			{"ControllerUnpublishVolume", "h", at(6), at(8), false},
		}, attachRPCs()...),
		Work: []Work{{"detach", "h", at(7)}, {"attach", "h", at(14)}},
	}
	got, err := records.Move(Pod{Name: "old", Node: "m", Handle: "h", Attachment: "va-old"},
		Pod{Name: "p", Node: "n", Claim: "c", Volume: "v", Handle: "h", Attachment: "va", Ready: at(20)})
	if err != nil {
		t.Fatal(err)
	}
	want := append([]Part{
		{Kubelet, "container stopped", 1},
		{NodeDriver, "unpublished", 0.5},
		{Kubelet, "kubelet unstages", 0.5},
		{NodeDriver, "unstaged", 0.5},
		{KubeletWait, "kubelet reports that the volume is free", 1.5},
		{Controllers, "detach requested", 1},
		{Sidecars, "attacher calls", 1},
		{Cloud, "detached in the cloud", 1},
		{Driver, "detached", 1},
		{Sidecars, "VolumeAttachment removed", 1},
		{Scheduler, "new pod bound to its node", 1},
	}, attachParts...)
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A node that uses the volume already has nothing to report.
func TestKubeletNeedNotReportAVolume(t *testing.T) {
	records := Records{Audit: auditOf(t, strings.ReplaceAll("10 system:kube-scheduler create pods/p/binding\n"+attachAudit, "system:node:n patch nodes", "system:node:m patch nodes")), RPCs: attachRPCs()}
	pod := Pod{Name: "p", Node: "n", Handle: "h"}
	if got := records.inUse(pod, object{"nodes", "", "n", "status"}, at(0), at(12)); !got.Equal(at(12)) {
		t.Errorf("got %s, want the time of the request", got)
	}
}

func TestAFlowThatALogDoesNotHaveIsAnError(t *testing.T) {
	if _, err := (Records{}).Start(Pod{Name: "p"}); err == nil || !strings.Contains(err.Error(), "creation of pod p") {
		t.Errorf("got the error %v", err)
	}
	if _, err := (Records{}).Move(Pod{Name: "p"}, Pod{}); err == nil || !strings.Contains(err.Error(), "deletion of pod p") {
		t.Errorf("got the error %v", err)
	}
	if _, err := (Records{Audit: auditOf(t, "0 admin create pods/p\n")}).Start(Pod{Name: "p"}); err == nil || !strings.Contains(err.Error(), "no log has") {
		t.Errorf("got the error %v", err)
	}
}
