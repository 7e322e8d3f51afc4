package nodeagent_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/nodeagent"
)

const (
	// startup is how long a program takes until it is there.
	startup = 20 * time.Second
	// patience is the dead man's switch of these agents.
	patience = 10 * time.Minute
)

type host struct {
	name    string
	files   map[string]string
	mirrors map[string]*corev1.Pod
	started map[string]time.Duration // programs that the kubelet runs
	broken  map[string]bool          // programs that somebody has broken
	targets string
	journal []byte
	agent   *v1alpha1.NodeAgent
	cut     bool
	began   time.Duration // of the agent
	heard   time.Duration
	seen    map[string]nodeagent.APIServer
}

type hosts struct {
	t       *testing.T
	random  *rand.Rand
	uptime  time.Duration
	all     []*host
	claim   string
	renewed map[string]time.Duration
	uid     int
	held    map[string]int
	claims  int
	silent  time.Duration // since when there is no API
	unasked int
}

func newHosts(t *testing.T, n int, seed uint64) *hosts {
	t.Helper()
	c := &hosts{t: t, random: rand.New(rand.NewPCG(seed, uint64(n))), uptime: time.Hour, renewed: map[string]time.Duration{}, held: map[string]int{}}
	for i := range n {
		h := &host{name: fmt.Sprintf("node-%d", i), files: map[string]string{}, mirrors: map[string]*corev1.Pod{}, started: map[string]time.Duration{}, broken: map[string]bool{}}
		h.seen, h.began = map[string]nodeagent.APIServer{}, c.uptime
		for _, component := range programs {
			h.files[component+".yaml"], h.started[component] = partText(component), 0
			h.mirrors[component] = partMirror(component, h.name)
		}
		c.all = append(c.all, h)
	}
	return c
}

func (c *hosts) now() time.Time { return now.Add(c.uptime) }

func (c *hosts) up(h *host, component string) bool {
	at, runs := h.started[component]
	return runs && !h.broken[component] && c.uptime >= at+startup
}

func (c *hosts) count(component string) (n int) {
	for _, h := range c.all {
		if c.up(h, component) {
			n++
		}
	}
	return n
}

func (c *hosts) api() bool { return c.count("kube-apiserver") > 0 && c.count("etcd") > len(c.all)/2 }

// kubelet ends and starts what the folder says, and shows it if there is an API.
func (c *hosts) kubelet(h *host) {
	for _, component := range programs {
		_, is := h.files[component+".yaml"]
		_, runs := h.started[component]
		switch {
		case is && !runs:
			h.started[component] = c.uptime
		case !is:
			delete(h.started, component)
		}
		if !c.api() {
			continue
		}
		if !is {
			delete(h.mirrors, component)
			continue
		}
		if h.mirrors[component] == nil {
			c.uid++
			h.mirrors[component] = partMirror(component, h.name)
			h.mirrors[component].UID = types.UID(fmt.Sprint(c.uid))
		}
		status := corev1.ConditionFalse
		if c.up(h, component) {
			status = corev1.ConditionTrue
		}
		h.mirrors[component].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
	}
}

// pass of time: API servers renew their Leases.
func (c *hosts) wait(d time.Duration) {
	c.uptime += d
	if !c.api() {
		if c.silent == 0 {
			c.silent = c.uptime
		}
		return
	}
	c.silent = 0
	for _, h := range c.all {
		if c.up(h, "kube-apiserver") {
			c.renewed[h.name] = c.uptime - c.uptime%(10*time.Second)
		}
	}
}

func (c *hosts) snapshot(h *host, reachable, live bool) nodeagent.Snapshot {
	s := nodeagent.Snapshot{
		Now: c.now(), Live: live, Self: nodeagent.Self{Node: h.name, BootID: "b", Dir: "/m"}, Agent: h.agent, Folder: nodeagent.Folder{Known: true},
		ControlPlane: nodeagent.ControlPlane{
			Terminate: true, Host: true, Hostname: h.name, Address: "api.example.com", RestoreAfter: patience,
			Signs: nodeagent.Signs{Uptime: c.uptime, Began: h.began, Answered: h.heard},
		},
	}
	for _, name := range slices.Sorted(maps.Keys(h.files)) {
		s.Folder.Files = append(s.Folder.Files, nodeagent.File{Name: name, Sum: name, Manifest: read(h.files[name])})
	}
	s.Journal, _ = nodeagent.ParseJournal(h.journal)
	if !reachable {
		return s
	}
	s.Node, s.KubeletSeen = aNode(h.targets), c.now()
	s.Node.Name = h.name
	for _, component := range programs {
		if mirror := h.mirrors[component]; mirror != nil {
			s.Pods = append(s.Pods, mirror)
			if h.targets != "" {
				s.Evacuations = append(s.Evacuations, anEvacuation(mirror))
			}
		}
	}
	s.ControlPlane.Known, s.ControlPlane.Claim = true, c.claim
	for _, other := range c.all {
		if mirror := other.mirrors["etcd"]; mirror != nil {
			s.ControlPlane.Etcd = append(s.ControlPlane.Etcd, mirror)
		}
		s.ControlPlane.Servers = append(s.ControlPlane.Servers, c.lease(h, other))
	}
	return s
}

func (c *hosts) lease(h, other *host) nodeagent.APIServer {
	renewed := now.Add(c.renewed[other.name])
	if known, there := h.seen[other.name]; !there || !known.Renewed.Equal(renewed) {
		one := nodeagent.APIServer{Host: other.name, Renewed: renewed}
		if there {
			one.Seen = c.now()
		}
		h.seen[other.name] = one
	}
	return h.seen[other.name]
}

func (c *hosts) turn(h *host, crashes bool) {
	for range 8 {
		reachable := c.api() && !h.cut
		if reachable {
			h.heard = c.uptime
		}
		s := c.snapshot(h, reachable, false)
		d := nodeagent.Decide(s)
		if d.NeedsLive && reachable {
			s = c.snapshot(h, true, true)
			d = nodeagent.Decide(s)
		}
		if !c.act(h, &s, d, crashes) {
			h.began, h.heard, h.seen = c.uptime, 0, map[string]nodeagent.APIServer{}
			return
		}
		if len(d.Moves) > 0 || d.Claim != nodeagent.ClaimKeep {
			continue
		}
		if reachable {
			h.agent = &v1alpha1.NodeAgent{Status: d.Status}
		}
		return
	}
}

func (c *hosts) act(h *host, s *nodeagent.Snapshot, d nodeagent.Decision, crashes bool) bool {
	dies := func() bool { return crashes && c.random.IntN(15) == 0 }
	if dies() {
		return false
	}
	if d.Journal != nil {
		h.journal = d.Journal.Text()
	}
	for _, m := range d.Moves {
		if dies() {
			return false
		}
		c.move(h, s, m)
	}
	c.decideClaim(h, d.Claim)
	return true
}

func (c *hosts) decideClaim(h *host, claim nodeagent.Claim) {
	switch {
	case claim == nodeagent.ClaimTake && c.claim == "":
		c.claim = h.name
		c.claims++
	case claim == nodeagent.ClaimRelease && c.claim == h.name:
		c.claim = ""
	case claim != nodeagent.ClaimKeep:
		c.t.Fatalf("%s does %d while %q has the claim", h.name, claim, c.claim)
	}
}

func (c *hosts) move(h *host, s *nodeagent.Snapshot, m nodeagent.Move) {
	content, there := h.files[m.From]
	if _, taken := h.files[m.To]; !there || taken {
		c.t.Fatalf("%+v: from is there: %t, to is there: %t", m, there, taken)
	}
	delete(h.files, m.From)
	h.files[m.To] = content
	component := read(content).Component
	switch {
	case m.Hold && h.targets == "":
		c.t.Fatalf("%s puts %s aside, and nobody asks", h.name, component)
	case m.Hold:
		c.held[component]++
		c.lastOne(h, s, component)
	case h.targets != "":
		c.unasked++
		if silence := c.uptime - h.heard; silence < patience && c.uptime-h.began < patience && !h.cut {
			c.t.Fatalf("%s brings %s back after %s", h.name, component, silence)
		}
	}
	c.kubelet(h)
}

// lastOne fails if a part goes that was, by what the agent could know, the last one.
func (c *hosts) lastOne(h *host, s *nodeagent.Snapshot, component string) {
	others := slices.ContainsFunc(s.ControlPlane.Servers, func(a nodeagent.APIServer) bool {
		return a.Host != h.name && s.Now.Sub(a.Renewed) < time.Minute && s.Now.Sub(a.Seen) < time.Minute
	})
	if !s.Live || !others || c.claim != h.name {
		c.t.Fatalf("%s of %s goes: other API servers %t, claimed by %q, by a cache %t", component, h.name, others, c.claim, !s.Live)
	}
	for _, other := range c.all {
		for _, earlier := range programs[:slices.Index(programs, component)] {
			if _, there := other.files[earlier+".yaml"]; there && other == h && h.mirrors[earlier] != nil {
				c.t.Fatalf("%s of %s goes before %s", component, h.name, earlier)
			}
		}
		if _, away := other.files[nodeagent.HeldName(component+".yaml")]; away && other != h {
			c.t.Fatalf("%s goes on %s and %s at once", component, h.name, other.name)
		}
	}
}

func (c *hosts) step(faults bool) {
	c.wait(time.Duration(c.random.IntN(6000)) * time.Millisecond)
	h := c.all[c.random.IntN(len(c.all))]
	switch c.random.IntN(40) {
	case 0, 1:
		h.targets = []string{"", allStatic}[c.random.IntN(2)]
	case 2:
		// Without its journal an agent that starts again waits from the beginning.
		if !faults {
			h.journal = nil
		}
	case 3:
		h.cut = c.random.IntN(3) == 0
	case 4:
		if faults {
			component := programs[2+c.random.IntN(2)]
			h.broken[component] = !h.broken[component]
		}
	case 5, 6, 7, 8, 9, 10, 11, 12, 13, 14:
		c.kubelet(h)
	default:
		c.turn(h, true)
	}
}

func (c *hosts) end() {
	for _, h := range c.all {
		h.targets, h.cut, h.broken = "", false, map[string]bool{}
	}
	for range 1000 {
		c.wait(2 * time.Second)
		for _, h := range c.all {
			c.kubelet(h)
			c.turn(h, false)
		}
	}
	for _, h := range c.all {
		for _, component := range programs {
			if !c.up(h, component) || part2(h, component).State == v1alpha1.StaticPodHeld {
				c.t.Errorf("in the end %s of %s is not there: %v", component, h.name, slices.Sorted(maps.Keys(h.files)))
			}
		}
	}
	if c.claim != "" {
		c.t.Errorf("in the end %s has the claim", c.claim)
	}
}

func part2(h *host, component string) v1alpha1.StaticPod {
	return told(nodeagent.Decision{Status: h.agent.Status}, "kube-system", component+"-"+h.name)
}
