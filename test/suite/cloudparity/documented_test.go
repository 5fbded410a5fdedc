package cloudparity

import (
	"bufio"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/openstack"
	"github.com/cinder-csi/cinder-csi/generator/inspect"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// calls are all calls that the product makes. The driver and the generator declare theirs. Package cloud declares the calls of the login
// and of the catalog.
func calls() []cloud.Call {
	var all []cloud.Call
	for _, call := range slices.Concat(openstack.Calls, inspect.Calls, []cloud.Call{createToken, identityVersions}) {
		if !slices.Contains(all, call) {
			all = append(all, call)
		}
	}
	return all
}

// documented are the statuses of each call in the OpenStack API references of Keystone, Nova and Cinder, without "Volume statuses". The table
// adds the statuses that a reference documents once for the whole service. These are 401 without a valid token, 403 if a policy refuses, and
// 406 for an unknown microversion. Cinder's reference omits most errors, so the table has those that Cinder has returned for years. These are
// 404 for an object that does not exist, 400 for a malformed request, and 413 for an exhausted quota.
var documented = map[cloud.Call][]int{
	createToken:      {http.StatusCreated, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound},
	identityVersions: {http.StatusMultipleChoices},
	computeVersions:  {http.StatusOK},
	volumeVersions:   {http.StatusOK, http.StatusMultipleChoices},

	createVolume:           {http.StatusAccepted, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusNotAcceptable, http.StatusRequestEntityTooLarge},
	createVolumeFromBackup: {http.StatusAccepted, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusRequestEntityTooLarge},
	getVolume:              {http.StatusOK, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusNotAcceptable},
	listVolumes:            {http.StatusOK, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusNotAcceptable},
	listChangedVolumes:     {http.StatusOK, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusNotAcceptable},
	deleteVolume:           {http.StatusAccepted, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusNotAcceptable},
	extendVolume:           {http.StatusAccepted, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusNotAcceptable, http.StatusRequestEntityTooLarge},
	extendAttachedVolume:   {http.StatusAccepted, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusRequestEntityTooLarge},
	createSnapshot:         {http.StatusAccepted, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusNotAcceptable, http.StatusRequestEntityTooLarge},
	createSnapshotInUse:    {http.StatusAccepted, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusRequestEntityTooLarge},
	getSnapshot:            {http.StatusOK, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusNotAcceptable},
	getSnapshotLater:       {http.StatusUnauthorized, http.StatusForbidden, http.StatusNotAcceptable}, // the simulation is Zed, which has no 3.71
	listSnapshots:          {http.StatusOK, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusNotAcceptable},
	deleteSnapshot:         {http.StatusAccepted, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusNotAcceptable},
	createBackup:           {http.StatusAccepted, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusRequestEntityTooLarge},
	createBackupInZone:     {http.StatusAccepted, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusRequestEntityTooLarge},
	listBackups:            {http.StatusOK, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound},
	getBackup:              {http.StatusOK, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound},
	deleteBackup:           {http.StatusAccepted, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusNotAcceptable},
	restoreBackup:          {http.StatusAccepted, http.StatusBadRequest, http.StatusUnauthorized, http.StatusNotFound, http.StatusNotAcceptable},
	addMetadata:            {http.StatusOK, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusNotAcceptable},
	removeMetadata:         {http.StatusOK, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusNotAcceptable},
	listMessages:           {http.StatusOK, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound},
	listAttachmentRecords:  {http.StatusOK, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound},
	getAttachmentRecord:    {http.StatusOK, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound},
	deleteAttachmentRecord: {http.StatusOK, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusConflict},

	getServer:         {http.StatusOK, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound},
	listAttachments:   {http.StatusOK, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusNotAcceptable},
	attach:            {http.StatusOK, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusConflict},
	attachMultiattach: {http.StatusOK, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusConflict},
	detach:            {http.StatusAccepted, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusConflict},

	volumeZones:        {http.StatusOK, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotAcceptable},
	computeZones:       {http.StatusOK, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotAcceptable},
	listTypes:          {http.StatusOK, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotAcceptable},
	defaultType:        {http.StatusOK, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusNotAcceptable},
	extraSpecs:         {http.StatusOK, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusNotAcceptable},
	encryption:         {http.StatusOK, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusNotAcceptable},
	volumeLimits:       {http.StatusOK, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotAcceptable},
	quotaSet:           {http.StatusOK, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotAcceptable},
	listProjectBackups: {http.StatusOK, http.StatusUnauthorized, http.StatusNotAcceptable},
	listServices:       {http.StatusOK, http.StatusUnauthorized, http.StatusForbidden},
	groupTypes:         {http.StatusOK, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound},
}

// TestEveryCallHasACaseForEachDocumentedStatus fails for a call without a case, or with a documented status that no case expects.
func TestEveryCallHasACaseForEachDocumentedStatus(t *testing.T) {
	all := cases()
	for _, call := range calls() {
		statuses, ok := documented[call]
		if !ok {
			t.Errorf("%+v has no row in the table of documented statuses", call)
		}
		for _, status := range statuses {
			if !slices.ContainsFunc(all, func(c Case) bool { return c.Status == status && covers(c.Call, call) }) {
				t.Errorf("no case asks %+v for its documented status %d", call, status)
			}
		}
	}
	for call := range documented {
		if !slices.Contains(calls(), call) {
			t.Errorf("the table has %+v, which nothing calls", call)
		}
	}
}

// covers reports whether a case about one call also covers another. That is the same call, or the same call at a microversion that does not
// have it.
func covers(asked, call cloud.Call) bool {
	elsewhere := []string{unsupported[call.Service], unreadable, beforeMessages, beforeGroupTypes, beforeAttachmentRecords}
	return asked == call || slices.Contains(elsewhere, asked.Microversion) && at(asked, "") == at(call, "")
}

// TestCaseNamesAreUnique checks that each case has its own recording, and finds recordings without a case.
func TestCaseNamesAreUnique(t *testing.T) {
	recorded := map[string]bool{}
	for _, c := range cases() {
		if recorded[c.slug()+".json"] {
			t.Errorf("two cases are named %q", c.Name)
		}
		recorded[c.slug()+".json"] = true
	}
	files := testenv.Value(os.ReadDir("testdata/shapes"))(t)
	for _, file := range files {
		if !recorded[file.Name()] {
			t.Errorf("%s is the recording of no case", file.Name())
		}
	}
}

// simulatorOnly are the cases whose state the real bed cannot reach, by name, with the reason.
func simulatorOnly(t *testing.T) map[string]string {
	t.Helper()
	file := testenv.Value(os.Open("testdata/simulatoronly.txt"))(t)
	defer file.Close()
	names := map[string]bool{}
	for _, c := range cases() {
		names[c.Name] = true
	}
	only := map[string]string{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, _ := strings.Cut(line, ": ")
		if reason == "" {
			t.Errorf("%q is simulator-only without a reason", name)
		}
		if !names[name] {
			t.Errorf("%q is simulator-only and no case", name)
		}
		only[name] = reason
	}
	testenv.Must(t, lines.Err())
	return only
}
