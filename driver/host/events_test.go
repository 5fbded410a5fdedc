package host

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/testenv"
)

// vdaCame is what Linux 6.1 sent when a virtio disk was plugged.
const vdaCame = "add@/devices/pci0000:00/0000:00:05.0/virtio3/block/vda\x00ACTION=add\x00DEVPATH=/devices/pci0000:00/0000:00:05.0/virtio3/block/vda\x00" +
	"SUBSYSTEM=block\x00MAJOR=254\x00MINOR=0\x00DEVNAME=vda\x00DEVTYPE=disk\x00DISKSEQ=1\x00SEQNUM=640\x00"

func TestOnlyEventsThatMayShowADiskAreWorthALook(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]bool{
		vdaCame: true,
		strings.Replace(vdaCame, "add@", "change@", 1):                      true, // it grew
		strings.Replace(vdaCame, "add@", "remove@", 1):                      false,
		"add@/devices/virtual/bdi/254:0\x00ACTION=add\x00SUBSYSTEM=bdi\x00": false,
		"libudev\x00\xfe\xed\xca\xfe\x00\x00\x00\x28SUBSYSTEM=block\x00":    false, // udevd's
		"add@devices/x\x00SUBSYSTEM=block\x00":                              false,
		"@/devices/x\x00SUBSYSTEM=block\x00":                                false,
		"add@/devices/x":                                                    false,
		"":                                                                  false,
	} {
		e, ok := parseUevent([]byte(message))
		if got := ok && e.aboutDisks(); got != want {
			t.Errorf("%q: want %t, got %+v, %t", message, want, e, ok)
		}
	}
}

func FuzzParseUevent(f *testing.F) {
	f.Add([]byte(vdaCame))
	f.Add([]byte("a@/\x00\x00SUBSYSTEM=\x00SUBSYSTEM=block"))
	f.Add([]byte{0})
	f.Fuzz(func(t *testing.T, message []byte) {
		e, ok := parseUevent(message)
		if ok && (e.action == "" || !strings.HasPrefix(e.path, "/") || len(e.subsystem) > len(message)) {
			t.Errorf("%q gives %+v", message, e)
		}
	})
}

func TestALostEventIsALookToo(t *testing.T) {
	t.Parallel()
	answers := []error{syscall.ENOBUFS, syscall.EINTR, nil, nil, io.ErrClosedPipe}
	messages := []string{2: "uninteresting", 3: vdaCame, 4: ""}
	read, woken := 0, 0
	receive(func(p []byte) (int, error) {
		defer func() { read++ }()
		return copy(p, messages[read]), answers[read]
	}, func(m []byte) bool { return string(m) == vdaCame }, func() { woken++ })
	if read != len(answers) || woken != 2 {
		t.Errorf("want %d reads, and a look for the lost event and the disk's, got %d, %d", len(answers), read, woken)
	}
}

type deafEvents struct{}

func (deafEvents) Subscribe(context.Context) (<-chan struct{}, error) {
	return nil, errors.New("not permitted")
}

func TestWithoutEventsADiskIsFoundWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{Events: deafEvents{}})
		time.AfterFunc(10*time.Second+time.Millisecond, func() { b.plug(t, "vdb", serial, Number{254, 16}) })
		began := time.Now()
		if _, err := b.Await(t.Context(), vol); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 11*time.Second+time.Millisecond {
			t.Errorf("want the disk found within a second, took %s", took)
		}
	})
}

// told fails the test unless a token comes; what could have brought it has been done.
func told(t *testing.T, tokens <-chan struct{}) {
	t.Helper()
	select {
	case <-tokens:
	case <-time.After(30 * time.Second):
		t.Fatal("want to be told of the disk, heard nothing for 30 s")
	}
}

func TestTheKernelTellsOfADiskThatGrows(t *testing.T) {
	disk := testenv.Loop(t, 8<<20)
	ctx, cancel := context.WithCancel(t.Context())
	tokens, err := kernelEvents{}.Subscribe(ctx)
	must(t, err)
	testenv.GrowLoop(t, disk, 16<<20)
	told(t, tokens)
	cancel() // and nothing is left: the race detector and the end of the test would show it
}

func TestAnExportedTreeTellsOfItsDisks(t *testing.T) {
	t.Parallel()
	m := testenv.NewMachine(t)
	tokens, err := EventsOf(m.Sys, m.Dev).Subscribe(t.Context())
	must(t, err)
	// As the exporter does it: complete, by one rename.
	half := m.Path("half")
	must(t, os.MkdirAll(half, 0o755))
	must(t, os.WriteFile(filepath.Join(half, "size"), []byte("8\n"), 0o600))
	must(t, os.Rename(half, filepath.Join(m.Sys, "block", "vdb")))
	told(t, tokens)
	m.Sysfs(t, "vdb", map[string]string{"size": "16\n"}) // a directory that came after the subscription
	told(t, tokens)
}

func TestTheMachinesOwnTreeHasTheKernelsEvents(t *testing.T) {
	t.Parallel()
	for sys, kernel := range map[string]bool{"": true, "/sys": true, "/sys/": true, "/tmp/sys": false} {
		if _, got := EventsOf(sys, "").(kernelEvents); got != kernel {
			t.Errorf("%q: want the kernel's events %t, got %t", sys, kernel, got)
		}
	}
}
