// Command guest-agent runs inside the test guest; see package agent.
//
//	guest-agent                 answers the host until somebody presses the power button
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cinder-csi/cinder-csi/test/bed/vm/agent"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "guest-agent:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q", args[0])
	}
	port, err := openPort()
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- agent.Serve(port) }()
	go func() {
		if err := agent.PowerButton(); err != nil {
			fmt.Fprintln(os.Stderr, "guest-agent:", err)
			return
		}
		ended <- nil
	}()
	return <-ended
}

// openPort finds the port by its name in sysfs, because without udev there is no link with that name.
func openPort() (*os.File, error) {
	files, _ := filepath.Glob("/sys/class/virtio-ports/*/name")
	for _, file := range files {
		if name, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(name)) == agent.Port {
			return os.OpenFile(filepath.Join("/dev", filepath.Base(filepath.Dir(file))), os.O_RDWR, 0)
		}
	}
	return nil, errors.New("there is no serial port named " + agent.Port)
}
