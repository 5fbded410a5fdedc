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

func TestAServerHasTheMetadataOfANodeOrATagForIt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		required ServerMetadata
		server   Server
		missing  string
	}{
		"the pair":                    {ServerMetadata{"cluster": "blue"}, Server{Metadata: map[string]string{"cluster": "blue"}}, ""},
		"the pair as a tag":           {ServerMetadata{"cluster": "blue"}, Server{Tags: []string{"cluster=blue"}}, ""},
		"another value":               {ServerMetadata{"cluster": "blue"}, Server{Metadata: map[string]string{"cluster": "red"}}, "cluster=blue"},
		"no metadata":                 {ServerMetadata{"cluster": "blue"}, Server{}, "cluster=blue"},
		"the key, and no value":       {ServerMetadata{"worker": ""}, Server{Metadata: map[string]string{"worker": ""}}, ""},
		"no value, and no key":        {ServerMetadata{"worker": ""}, Server{}, "worker="},
		"one of two":                  {ServerMetadata{"a": "1", "b": "2"}, Server{Metadata: map[string]string{"a": "1"}}, "b=2"},
		"nothing, which has each one": {nil, Server{}, ""},
	} {
		if got := test.required.Missing(test.server); got != test.missing {
			t.Errorf("%s: want %q missing, got %q", name, test.missing, got)
		}
	}
}
