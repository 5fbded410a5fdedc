// Package openstacksim is a simulated OpenStack: Keystone v3, Cinder v3 up to 3.70, Nova v2.1 up to 2.93 and the metadata
// service. It serves HTTP to a member, a reader or an administrator.
//
// The cases of test/suite/cloudparity run against it and against a real cloud: where they differ, the simulation is wrong. It does not
// know the code that uses it. Objects change state after times that a test sets. Requests and operations fail if a test asks for
// it. Only package time is used, so in a testing/synctest bubble a day passes at once. Newer microversions and other services,
// which the real bed lacks, are not simulated.
package openstacksim

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Sim is one simulated cloud. Make it with New. Goroutines may share it.
type Sim struct {
	// mu guards everything below. Nothing waits while it holds mu.
	mu       sync.Mutex
	config   Config
	source   *rand.ChaCha8
	latency  map[Operation]time.Duration
	timing   Timing
	draws    map[string]int       // how often an operation ran on an object
	free     map[string]time.Time // when a server has finished its operations
	effects  []Effect
	events   []event
	sequence int
	faults   []*Fault
	requests []Request
	data     DataPlane
	counted  int

	tokens      map[string]*token
	appCreds    []*ApplicationCredential
	types       []*VolumeType
	defaultType string
	volumeZones []zone
	serverZones []zone
	quota       map[string]map[string]int // by project id
	records
	writes map[string][]written // by volume

	backend         backend
	retention       bool
	lag, messageLag time.Duration
	pasts           []past // oldest first

	backupsDisabled, backendsFrozen bool

	ahead   time.Duration // of the clock of the second Cinder host
	objects int           // created so far; every second one belongs to the second host
}

// New makes a cloud. It starts no goroutine, so nothing has to be stopped.
func New(c Config) *Sim {
	var seed [32]byte
	for i := range 8 {
		seed[i] = byte(c.Seed >> (8 * i))
	}
	s := &Sim{
		config: c, source: rand.NewChaCha8(seed), latency: maps.Clone(c.Latency), defaultType: c.DefaultVolumeType, data: noDataPlane{},
		tokens: map[string]*token{}, quota: map[string]map[string]int{},
		records: records{volumes: map[string]*volume{}, snapshots: map[string]*snapshot{}, backups: map[string]*backup{}, servers: map[string]*server{}},
		writes:  map[string][]written{},
		backend: backend{busy: map[string]bool{}, moving: map[string]bool{}},
	}
	if s.latency == nil {
		s.latency = map[Operation]time.Duration{}
	}
	for _, p := range c.Projects {
		s.quota[p.ID] = maps.Clone(p.Quota)
	}
	for _, a := range c.ApplicationCredentials {
		a.AccessRules = slices.Clone(a.AccessRules)
		s.appCreds = append(s.appCreds, &a)
	}
	for _, t := range c.VolumeTypes {
		s.addVolumeType(t)
	}
	for _, v := range c.Servers {
		s.addServer(v)
	}
	s.volumeZones = zonesOf(c.VolumeZones, c.UnavailableVolumeZones...)
	s.serverZones = zonesOf(c.ComputeZones, c.UnavailableComputeZones...)
	return s
}

func (s *Sim) project(idOrName string) *Project {
	for i, p := range s.config.Projects {
		if p.ID == idOrName || p.Name == idOrName {
			return &s.config.Projects[i]
		}
	}
	return nil
}

// lock locks mu and returns what unlocks it.
func (s *Sim) lock() (unlock func()) {
	s.mu.Lock()
	return s.mu.Unlock
}

func assign[T any](s *Sim, field *T, value T) {
	defer s.lock()()
	*field = value
}
