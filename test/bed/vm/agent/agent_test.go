package agent

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAProgramThatFailsIsAnOutcomeAndOneThatIsNotThereAnError(t *testing.T) {
	t.Parallel()
	var o Outcome
	if err := (&Agent{}).Run(Command{Args: []string{"sh", "-c", "cat; echo $A >&2; exit 3"}, Env: []string{"A=b"}, Input: []byte("a")}, &o); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Outcome{Code: 3, Output: []byte("ab\n")}, o); diff != "" {
		t.Error(diff)
	}
	if err := (&Agent{}).Run(Command{Args: []string{"/no/such/program"}}, &o); err == nil {
		t.Error("want an error for a program that is not there")
	}
}

func TestAKernelsEventIsItsFields(t *testing.T) {
	t.Parallel()
	got := parse([]byte("add@/devices/vda\x00ACTION=add\x00DEVNAME=vda\x00"))
	if diff := cmp.Diff(map[string]string{"ACTION": "add", "DEVNAME": "vda"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAConnectionToTheDriverIsUsedByCalls(t *testing.T) {
	t.Parallel()
	a := &Agent{}
	here, driver := net.Pipe()
	id := a.tunnels.add(here)
	go func() {
		buffer := make([]byte, 3)
		_, _ = io.ReadFull(driver, buffer)
		_, _ = driver.Write(append(buffer, '!'))
	}()
	if err := a.Write(Packet{ID: id, Data: []byte("ask")}, nil); err != nil {
		t.Fatal(err)
	}
	var got []byte
	if err := a.Read(id, &got); err != nil || string(got) != "ask!" {
		t.Errorf("want the answer of the driver, got %q, %v", got, err)
	}
	if err := a.Close(id, nil); err != nil {
		t.Fatal(err)
	}
	if err := a.Read(id, &got); err == nil {
		t.Error("want an error for a closed connection")
	}
}

func TestOnlyThePressedPowerKeyEndsTheGuest(t *testing.T) {
	t.Parallel()
	event := func(kind, code uint16, value int32) []byte {
		b, err := binary.Append(nil, binary.LittleEndian, inputEvent{Type: kind, Code: code, Value: value})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	others := append(append(event(0, 116, 1), event(1, 30, 1)...), event(1, 116, 0)...)
	if err := awaitKey(bytes.NewReader(others)); !errors.Is(err, io.EOF) {
		t.Errorf("want other events ignored until the end, got %v", err)
	}
	if err := awaitKey(bytes.NewReader(append(others, event(1, 116, 1)...))); err != nil {
		t.Error(err)
	}
}

func TestTheNextHostIsAnsweredAfterOneThatLeftWhileItsCallWaited(t *testing.T) {
	t.Parallel()
	a := &Agent{}
	here, driver := net.Pipe() // the driver says nothing
	defer driver.Close()
	id := a.tunnels.add(here)
	ended := make(chan error)
	go func() {
		ended <- a.serve(struct {
			io.Reader
			io.Writer
		}{strings.NewReader(fmt.Sprintf(`{"method":"Agent.Read","params":[%d],"id":1}`, id)), io.Discard})
	}()
	select {
	case err := <-ended:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the agent still waits for the driver")
	}
}
