package volume

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

const fastID = "11111111-0000-4000-8000-000000000001"

// retypable is a cloud of two types with one volume of the type slow.
func retypable(status Status) *fakeCloud {
	c := newCloud(Volume{ID: id(1), Status: status, Type: "slow", Metadata: map[string]string{"team": "a", "other": "stays"}})
	c.types = []Type{{ID: "11111111-0000-4000-8000-000000000002", Name: "slow"}, {ID: fastID, Name: "fast"}}
	return c
}

func TestModifyWritesOnlyWhatDiffers(t *testing.T) {
	for name, test := range map[string]struct {
		change Change
		writes []string
		want   Volume
	}{
		"nothing":                      {want: Volume{Type: "slow", Metadata: map[string]string{"team": "a", "other": "stays"}}},
		"all as it is":                 {change: Change{Type: "slow", Metadata: map[string]string{"team": "a"}}, want: Volume{Type: "slow", Metadata: map[string]string{"team": "a", "other": "stays"}}},
		"its type in other letters":    {change: Change{Type: "SLOW"}, want: Volume{Type: "slow", Metadata: map[string]string{"team": "a", "other": "stays"}}},
		"its type by id":               {change: Change{Type: "11111111-0000-4000-8000-000000000002"}, want: Volume{Type: "slow", Metadata: map[string]string{"team": "a", "other": "stays"}}},
		"another type":                 {change: Change{Type: "fast"}, writes: []string{"Retype" + string(id(1)) + fastID + "false"}, want: Volume{Type: "fast", Metadata: map[string]string{"team": "a", "other": "stays"}}},
		"another type by id, may move": {change: Change{Type: fastID, Migrate: true}, writes: []string{"Retype" + string(id(1)) + fastID + "true"}, want: Volume{Type: "fast", Metadata: map[string]string{"team": "a", "other": "stays"}}},
		"metadata": {
			change: Change{Metadata: map[string]string{"team": "b", "new": ""}}, writes: []string{"AddMetadata" + string(id(1))},
			want: Volume{Type: "slow", Metadata: map[string]string{"team": "b", "new": "", "other": "stays"}},
		},
		"both": {
			change: Change{Type: "fast", Metadata: map[string]string{"team": "b"}},
			writes: []string{"Retype" + string(id(1)) + fastID + "false", "AddMetadata" + string(id(1))},
			want:   Volume{Type: "fast", Metadata: map[string]string{"team": "b", "other": "stays"}},
		},
	} {
		for _, status := range []Status{Available, InUse} {
			synctest.Test(t, func(t *testing.T) {
				c := retypable(status)
				if err := service(c).Modify(within(t, 60), id(1), test.change); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				var writes []string
				for _, call := range c.calls {
					if strings.HasPrefix(call, "Retype") || strings.HasPrefix(call, "AddMetadata") {
						writes = append(writes, call)
					}
				}
				if diff := cmp.Diff(test.writes, writes); diff != "" {
					t.Errorf("%s: writes (-want +got):\n%s", name, diff)
				}
				got, _ := c.read(id(1))
				if diff := cmp.Diff(test.want, Volume{Type: got.Type, Metadata: got.Metadata}); diff != "" || got.Status != status {
					t.Errorf("%s: status %s (-want +got):\n%s", name, got.Status, diff)
				}
			})
		}
	}
}

func TestARetypeThatWasTakenAndNotDoneIsAnError(t *testing.T) {
	for _, migrate := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := retypable(Available)
			c.stubborn, c.reason = true, "no host is right"
			err := service(c).Modify(within(t, 60), id(1), Change{Type: "fast", Migrate: migrate, Metadata: map[string]string{"new": "1"}})
			kind := map[bool]Kind{false: InvalidArgument, true: Failed}[migrate]
			wantKind(t, err, kind, false) // nothing was changed, so the answer may be final
			if !strings.Contains(err.Error(), "no host is right") || strings.Contains(err.Error(), "policy: on-demand") == migrate {
				t.Error(err)
			}
			if c.count("AddMetadata") != 0 {
				t.Errorf("metadata of a change that failed: %v", c.calls)
			}
		})
	}
}

func TestARetypeUnderWayIsAwaitedAndNotAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := retypable("retyping")
		c.later(id(1), func(v *Volume) { v.Status, v.Type = InUse, "fast" })
		if err := service(c).Modify(within(t, 60), id(1), Change{Type: "fast"}); err != nil || c.count("Retype") != 0 {
			t.Errorf("got %v after %v", err, c.calls)
		}
	})
}

func TestChangesThatCannotBe(t *testing.T) {
	refused := Errorf(Conflict, "Retype needs volume to be in available or in-use state")
	for name, test := range map[string]struct {
		id     ID
		change Change
		before func(c *fakeCloud)
		kind   Kind
		sent   bool
		text   string
	}{
		"no volume":                 {id: id(9), kind: NotFound},
		"no volume's id":            {id: "vol", kind: NotFound},
		"a volume that is going":    {id: id(1), before: func(c *fakeCloud) { c.volumes[id(1)].Status = Deleting }, kind: NotFound, text: "being deleted"},
		"an unknown type":           {id: id(1), change: Change{Type: "fsat"}, kind: InvalidArgument, text: "did you mean fast?"},
		"types that cannot be read": {id: id(1), change: Change{Type: "fast"}, before: func(c *fakeCloud) { c.fail["Types"] = Errorf(Unavailable, "out") }, kind: Unavailable},
		"Cinder refuses":            {id: id(1), change: Change{Type: "fast"}, before: func(c *fakeCloud) { c.fail["Retype"] = refused }, kind: Conflict, text: "Retype needs"},
		"no quota":                  {id: id(1), change: Change{Type: "fast"}, before: func(c *fakeCloud) { c.fail["Retype"] = Errorf(Exhausted, "gigabytes_fast") }, kind: Exhausted},
		"an answer that is lost":    {id: id(1), change: Change{Type: "fast"}, before: func(c *fakeCloud) { c.fail["Retype"] = Errorf(Unavailable, "lost").AfterWrite() }, kind: Unavailable, sent: true},
		"it changed before Cinder did": {id: id(1), change: Change{Type: "fast"}, before: func(c *fakeCloud) {
			c.fail["Retype"] = refused
			c.hook["Retype"] = func() { c.change(id(1), func(v *Volume) { v.Status = "extending" }) }
		}, kind: Busy, text: "extending"},
		"it ends in an error":         {id: id(1), change: Change{Type: "fast"}, before: func(c *fakeCloud) { c.outcome = ErrorSt }, kind: Failed, sent: true, text: "status error"},
		"metadata after the type":     {id: id(1), change: Change{Type: "fast", Metadata: map[string]string{"a": "b"}}, before: func(c *fakeCloud) { c.fail["AddMetadata"] = Errorf(PermissionDenied, "no") }, kind: PermissionDenied, sent: true},
		"metadata alone":              {id: id(1), change: Change{Metadata: map[string]string{"a": "b"}}, before: func(c *fakeCloud) { c.fail["AddMetadata"] = Errorf(PermissionDenied, "no") }, kind: PermissionDenied},
		"it goes while it is retyped": {id: id(1), change: Change{Type: "fast"}, before: func(c *fakeCloud) { c.hook["Retype"] = func() { c.remove(id(1)) } }, kind: NotFound, sent: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := retypable(Available)
				if test.before != nil {
					test.before(c)
				}
				err := service(c).Modify(within(t, 60), test.id, test.change)
				wantKind(t, err, test.kind, test.sent)
				if !strings.Contains(err.Error(), test.text) {
					t.Error(err)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) { // someone else was faster: done
		c := retypable(Available)
		c.fail["Retype"] = refused
		c.hook["Retype"] = func() { c.change(id(1), func(v *Volume) { v.Type = "fast" }) }
		if err := service(c).Modify(within(t, 60), id(1), Change{Type: "fast"}); err != nil {
			t.Error(err)
		}
	})
}

func testModifyIn(t *testing.T, status Status) {
	synctest.Test(t, func(t *testing.T) {
		c := retypable(status)
		err := service(c).Modify(within(t, 60), id(1), Change{Type: "fast"})
		sent := c.count("Retype") == 1
		switch status.Meaning().Extend {
		case Proceed:
			if err != nil || !sent {
				t.Errorf("got %v, sent %v", err, sent)
			}
		case Wait:
			wantKind(t, err, DeadlineExceeded, false)
		case BeingDeleted:
			wantKind(t, err, NotFound, false)
		default:
			wantKind(t, err, Conflict, false)
		}
		if sent && status != Available && status != InUse {
			t.Error("Cinder was asked")
		}
	})
}

func TestTwoCallsDoNotChangeOneVolumeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := retypable(Available)
		s := service(c)
		c.hook["Retype"] = func() {
			wantKind(t, s.Modify(within(t, 60), id(1), Change{Type: "fast"}), Busy, false)
		}
		if err := s.Modify(within(t, 60), id(1), Change{Type: "fast"}); err != nil || c.count("Retype") != 1 {
			t.Errorf("got %v after %v", err, c.calls)
		}
	})
}

// What a change does with a volume in each status: the requests it sends, the end it comes to.
func TestModifyInEveryStatus(t *testing.T) {
	for _, status := range everyStatus {
		t.Run(string(status), func(t *testing.T) { testModifyIn(t, status) })
	}
}
