package openstack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// replies fuzzes what a service answers to its operations, under a status of the fuzzer's and under the one that the operation takes for
// success. No answer panics, and no error is long or holds a control character.
func replies(f *testing.F, service string) {
	var its []operation
	for _, op := range operations {
		c, fake := connect(f, op.answer)
		if _ = op.run(f.Context(), c); strings.HasPrefix(fake.seen[0].Path, service) {
			its = append(its, op)
		}
	}
	for i, op := range its {
		f.Add(uint8(i), uint16(op.answer.status), op.answer.body, "req-1")
		for _, body := range []string{
			`{"badRequest": {"code": 400, "message": "Invalid volume: \u001b[31m status must be available"}}`, `null`, `[]`, `{"volume": null}`, `<html>`, ``,
			`{"volumes": [{"id": "` + volumeID + `", "size": 1e99}, null, {"attachments": [null, {"server_id": null}], "metadata": {"a": null}}], "volumes_links": [{}]}`,
			`{"quota_set": {"volumes": {"limit": -1}, "id": "p", "gigabytes": null}}`, `{"volumeAttachments": [{"volumeId": 7}]}`,
		} {
			f.Add(uint8(i), uint16(300+i), body, "req-\u009b31m")
		}
	}
	f.Fuzz(func(t *testing.T, n uint8, status uint16, body, requestID string) {
		op := its[int(n)%len(its)]
		for _, code := range []int{int(status)%500 + 100, op.answer.status} {
			c, _ := connect(t, answer{status: code, body: body, header: map[string]string{"X-Openstack-Request-Id": requestID}})
			err := op.run(t.Context(), c)
			if err == nil {
				continue
			}
			text := err.Error()
			if len(text) > 4<<10 {
				t.Errorf("%s: an error of %d bytes", op.name, len(text))
			}
			if strings.ContainsFunc(text, func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf) }) {
				t.Errorf("%s: control characters in %q", op.name, text)
			}
		}
	})
}

func FuzzCinderReplies(f *testing.F) { replies(f, "/v3/") }

func FuzzNovaReplies(f *testing.F) { replies(f, "/v2.1/") }

// The committed corpus holds what found something, or what is worth to begin with; it runs with the tests.
func TestTheCorporaOfRepliesAreThere(t *testing.T) {
	for _, target := range []string{"FuzzCinderReplies", "FuzzNovaReplies"} {
		if entries, err := os.ReadDir(filepath.Join("testdata", "fuzz", target)); err != nil || len(entries) == 0 {
			t.Errorf("%s: %d files, %v", target, len(entries), err)
		}
	}
}
