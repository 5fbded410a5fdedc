package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"
)

// patience limits every wait for QEMU and the agent. The host may be busy.
const patience = 5 * time.Minute

// monitor is a client of QMP, the protocol of QEMU (QEMU, docs/interop/qmp-spec.txt). It sends one command at a time.
type monitor struct {
	conn    net.Conn
	answers chan message
	events  chan message
}

type message struct {
	Return json.RawMessage `json:"return"`
	Error  *struct {
		Class string `json:"class"`
		Desc  string `json:"desc"`
	} `json:"error"`
	Event string `json:"event"`
	Data  struct {
		Device string `json:"device"`
	} `json:"data"`
}

func openMonitor(socket string) (*monitor, error) {
	conn, err := dial(socket)
	if err != nil {
		return nil, err
	}
	m := &monitor{conn: conn, answers: make(chan message), events: make(chan message, 1024)}
	go m.read()
	return m, m.do("qmp_capabilities", nil, nil)
}

func (m *monitor) read() {
	defer close(m.answers)
	for d := json.NewDecoder(m.conn); ; {
		var in message
		if d.Decode(&in) != nil {
			return
		}
		switch {
		case in.Event == "DEVICE_DELETED":
			m.events <- in
		case in.Return != nil || in.Error != nil:
			m.answers <- in
		}
	}
}

// do runs a command; result may be nil.
func (m *monitor) do(command string, arguments map[string]any, result any) error {
	request := map[string]any{"execute": command}
	if arguments != nil {
		request["arguments"] = arguments
	}
	if err := json.NewEncoder(m.conn).Encode(request); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	select {
	case answer, ok := <-m.answers:
		switch {
		case !ok:
			return fmt.Errorf("%s: QEMU has ended", command)
		case answer.Error != nil:
			return fmt.Errorf("%s: %s", command, answer.Error.Desc)
		case result != nil:
			return json.Unmarshal(answer.Return, result)
		}
		return nil
	case <-time.After(patience):
		return fmt.Errorf("%s: no answer within %s", command, patience)
	}
}

// deleted waits until QEMU has removed a device.
func (m *monitor) deleted(device string) error {
	for timeout := time.After(patience); ; {
		select {
		case e := <-m.events:
			if e.Data.Device == device {
				return nil
			}
		case <-timeout:
			return fmt.Errorf("the guest did not let %s go within %s", device, patience)
		}
	}
}

// dial connects to a socket that a process creates after its start.
func dial(socket string) (net.Conn, error) {
	var err error
	for began := time.Now(); time.Since(began) < patience; time.Sleep(20 * time.Millisecond) {
		var conn net.Conn
		if conn, err = net.Dial("unix", socket); err == nil {
			return conn, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("QEMU did not make %s within %s", socket, patience), err)
}
