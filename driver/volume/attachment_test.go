package volume

import "testing"

func TestAttachmentsAreTheSameWhateverTheirHostAndDevice(t *testing.T) {
	t.Parallel()
	a := Attachment{ID: "1", Volume: "v", Server: "s", Status: AttachmentAttached}
	for name, test := range map[string]struct {
		b    Attachment
		want bool
	}{
		"equal":                {Attachment{ID: "1", Volume: "v", Server: "s", Status: AttachmentAttached}, true},
		"with host, device":    {Attachment{ID: "1", Volume: "v", Server: "s", Status: AttachmentAttached, Host: "kvm-7", Device: "/dev/vdb"}, true},
		"of another ID":        {Attachment{ID: "2", Volume: "v", Server: "s", Status: AttachmentAttached}, false},
		"of another volume":    {Attachment{ID: "1", Volume: "w", Server: "s", Status: AttachmentAttached}, false},
		"to another server":    {Attachment{ID: "1", Volume: "v", Server: "t", Status: AttachmentAttached}, false},
		"in another status":    {Attachment{ID: "1", Volume: "v", Server: "s", Status: AttachmentDetaching}, false},
		"of Nova's, no status": {Attachment{ID: "1", Volume: "v", Server: "s"}, false},
	} {
		if got := a.Same(test.b); got != test.want {
			t.Errorf("%s: want %v, got %v", name, test.want, got)
		}
	}
}
