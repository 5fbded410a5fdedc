package agent

import (
	"fmt"
	"net"
	"sync"
	"time"
)

// Packet is a piece of what goes through a connection to the driver socket.
type Packet struct {
	ID   int
	Data []byte
}

// tunnels are connections to the driver socket that the host uses by calls.
type tunnels struct {
	mu   sync.Mutex
	last int
	open map[int]net.Conn
}

func (t *tunnels) add(c net.Conn) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = map[int]net.Conn{}
	}
	t.last++
	t.open[t.last] = c
	return t.last
}

func (t *tunnels) get(id int) (net.Conn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.open[id]; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("connection %d is closed", id)
}

func (t *tunnels) remove(id int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.open[id]; c != nil {
		c.Close()
	}
	delete(t.open, id)
}

func (t *tunnels) closeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.open {
		c.Close()
	}
	clear(t.open)
}

// Dial connects to the driver socket and returns the ID of the connection.
func (a *Agent) Dial(_ struct{}, id *int) error {
	c, err := net.DialTimeout("unix", Socket, time.Second)
	if err != nil {
		return err
	}
	*id = a.tunnels.add(c)
	return nil
}

// Write sends data of the host to the driver.
func (a *Agent) Write(p Packet, _ *struct{}) error {
	c, err := a.tunnels.get(p.ID)
	if err != nil {
		return err
	}
	_, err = c.Write(p.Data)
	return err
}

// Read waits for data of the driver.
func (a *Agent) Read(id int, data *[]byte) error {
	c, err := a.tunnels.get(id)
	if err != nil {
		return err
	}
	buffer := make([]byte, 32<<10)
	n, err := c.Read(buffer)
	*data = buffer[:n]
	return err
}

// Close closes a connection to the driver.
func (a *Agent) Close(id int, _ *struct{}) error {
	a.tunnels.remove(id)
	return nil
}
