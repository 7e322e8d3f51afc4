package nodeagent_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
	"ebbtide.dev/ebbtide/internal/core/nodeagent"
	"ebbtide.dev/ebbtide/test/tier"
)

// simulated is a node with a folder, a kubelet, somebody who meddles, and an agent that
// may crash between any two of its steps.
type simulated struct {
	t       *testing.T
	random  *rand.Rand
	now     time.Time
	files   map[string]string // content by name
	changed map[string]time.Time
	mirrors map[string]*corev1.Pod // by the name in the manifest
	node    *corev1.Node
	journal []byte // on disk
	agent   *v1alpha1.NodeAgent
	uid     int
	holds   int
	backs   int
	crashes int // with something left to do
}

func (w *simulated) content(name string, n int) string {
	return strings.Replace(proxyText, "name: proxy,", "name: "+name+",", 1) + fmt.Sprintf("# %d\n", n)
}

func nameIn(content string) string {
	if m := read(content); m != nil {
		return m.Name
	}
	return ""
}

var manifests = map[string]*nodeagent.Manifest{}

func read(content string) *nodeagent.Manifest {
	kind, _, _ := strings.Cut(content, "# ")
	if manifests[kind] == nil {
		manifests[kind], _ = nodeagent.ReadManifest([]byte(kind))
	}
	return manifests[kind]
}

// kubelet ends and starts what the folder says.
func (w *simulated) kubelet() {
	made := map[string]bool{}
	for name, content := range w.files {
		if nodeagent.Visible(name) {
			made[nameIn(content)] = true
		}
	}
	for name := range w.mirrors {
		if !made[name] {
			delete(w.mirrors, name)
		}
	}
	for name := range made {
		if w.mirrors[name] == nil {
			w.uid++
			w.mirrors[name] = aMirror(fmt.Sprint(w.uid), int32(1000*len(name)))
			w.mirrors[name].Name = name + "-node-7"
		}
	}
}

func (w *simulated) snapshot(live, reachable bool) nodeagent.Snapshot {
	s := nodeagent.Snapshot{Now: w.now, Live: live, Self: nodeagent.Self{Node: "node-7", BootID: "b", Dir: "/m"}, Agent: w.agent, Folder: nodeagent.Folder{Known: true}}
	for _, name := range slices.Sorted(maps.Keys(w.files)) {
		f := nodeagent.File{Name: name, Sum: fmt.Sprintf("%x", w.files[name]), Changed: w.changed[name]}
		f.Manifest = read(w.files[name])
		s.Folder.Files = append(s.Folder.Files, f)
	}
	s.Journal, _ = nodeagent.ParseJournal(w.journal)
	if !reachable {
		return s
	}
	s.Node = w.node
	set, _ := cordon.Suppressed(w.node)
	for _, name := range slices.Sorted(maps.Keys(w.mirrors)) {
		pod := w.mirrors[name]
		s.Pods = append(s.Pods, pod)
		if set.Covers(pod) || w.random.IntN(4) == 0 {
			s.Evacuations = append(s.Evacuations, anEvacuation(pod))
		}
	}
	return s
}

func (w *simulated) crashed() bool {
	if w.random.IntN(4) > 0 {
		return false
	}
	w.crashes++
	return true
}

func (w *simulated) pass(reachable, safe bool) {
	for range 8 {
		d := nodeagent.Decide(w.snapshot(false, reachable))
		if d.NeedsLive && reachable {
			d = nodeagent.Decide(w.snapshot(true, true))
		}
		if !w.act(d, safe) {
			return
		}
		if len(d.Moves) == 0 {
			w.report(d, reachable)
			return
		}
	}
	w.t.Fatalf("the agent never comes to an end: %v", slices.Sorted(maps.Keys(w.files)))
}

func (w *simulated) act(d nodeagent.Decision, safe bool) bool {
	if d.Journal != nil {
		if !safe && w.crashed() {
			return false
		}
		w.journal = d.Journal.Text()
	}
	for _, m := range d.Moves {
		if !safe && w.crashed() {
			return false
		}
		w.move(m)
	}
	if done := d.Journal == nil && len(d.Moves) == 0; !done && !safe && w.crashed() {
		return false
	}
	return true
}

func (w *simulated) move(m nodeagent.Move) {
	content, found := w.files[m.From]
	_, taken := w.files[m.To]
	if !found || taken != m.Over {
		w.t.Fatalf("%+v: from is there: %t, to is there: %t", m, found, taken)
	}
	set, _ := cordon.Suppressed(w.node)
	covered := func(priority int) bool {
		pod := aMirror("any", int32(priority))
		pod.Labels = map[string]string{"app": "proxy"}
		return set.Covers(pod)
	}
	if priority := 1000 * len(nameIn(content)); m.Hold != covered(priority) {
		w.t.Fatalf("%+v while the Node says %q", m, w.node.Annotations[v1alpha1.DrainTargetsAnnotation])
	}
	if m.Hold {
		w.holds++
	} else {
		w.backs++
	}
	delete(w.files, m.From)
	w.files[m.To], w.changed[m.To] = content, w.now
}

func (w *simulated) report(d nodeagent.Decision, reachable bool) {
	if !reachable {
		return
	}
	for _, pod := range d.Status.StaticPods {
		if w.mirrors[strings.TrimSuffix(pod.Name, "-node-7")] != nil && pod.State == v1alpha1.StaticPodHeld {
			w.t.Fatalf("%s is told to be held and is there", pod.Name)
		}
	}
	w.agent = &v1alpha1.NodeAgent{Status: d.Status}
}

var simulatedTargets = []string{"", "", upTo7000, upTo6999, `[{"podPriority":4000,"podType":"Static"}]`, `[{"podPriority":9,"podType":"DaemonSet"}]`, "}"}

func (w *simulated) step(n int) (taken string) {
	w.now = w.now.Add(time.Duration(w.random.IntN(400)) * time.Millisecond)
	name := []string{"edge", "proxy", "storage"}[w.random.IntN(3)]
	held := nodeagent.HeldName(name + ".yaml")
	switch w.random.IntN(24) {
	case 0:
		w.node = aNode(simulatedTargets[w.random.IntN(len(simulatedTargets))])
	case 1:
		taken = w.files[name+".yaml"]
		w.files[name+".yaml"], w.changed[name+".yaml"] = w.content(name, n), w.now
	case 2:
		w.journal = nil
	case 3:
		w.journal = w.journal[:w.random.IntN(len(w.journal)+1)]
	case 4:
		taken = w.files[held]
		delete(w.files, held)
	case 5:
		if _, there := w.files[name+".yaml"]; !there && w.files[held] != "" {
			w.files[name+".yaml"], w.changed[name+".yaml"] = w.files[held], w.now
			delete(w.files, held)
		}
	case 6:
		w.pass(false, false)
	case 7, 8, 9, 10:
		w.kubelet()
	default:
		w.pass(true, false)
	}
	return taken
}

// Whatever happens: a manifest moves only as the Node says, nothing is lost but what
// somebody else has written over or taken away, and in the end all is back.
func TestSimulation(t *testing.T) { simulate(t, 9_000) }

func TestLongSimulation(t *testing.T) {
	tier.Long(t)
	simulate(t, 45_000)
}

func simulate(t *testing.T, steps int) {
	t.Helper()
	w := &simulated{
		t: t, random: rand.New(rand.NewPCG(14, 90)), now: now, node: aNode(""), files: map[string]string{}, changed: map[string]time.Time{}, mirrors: map[string]*corev1.Pod{},
	}
	for i, name := range []string{"edge", "proxy", "storage"} {
		w.files[name+".yaml"] = w.content(name, -i)
	}
	for n := range steps {
		before := maps.Clone(w.files)
		taken := w.step(n)
		w.lost(before, taken)
	}
	w.node = aNode("")
	for range 5 {
		w.now = w.now.Add(time.Second)
		w.pass(true, true)
		w.kubelet()
	}
	for name := range w.files {
		if _, held := nodeagent.HeldFile(name); held {
			t.Errorf("%s is aside for ever", name)
		}
	}
	for _, pod := range w.agent.Status.StaticPods {
		if pod.State != v1alpha1.StaticPodRunning {
			t.Errorf("in the end %s is %s: %s", pod.Name, pod.State, pod.Message)
		}
	}
	t.Logf("%d crashes, %d manifests put aside, %d back", w.crashes, w.holds, w.backs)
	if w.crashes < steps/25 {
		t.Errorf("the agent has crashed %d times, too few to show anything", w.crashes)
	}
	if w.holds < steps/150 || w.backs < steps/300 {
		t.Errorf("%d manifests were put aside and %d back, too few to show anything", w.holds, w.backs)
	}
}

func (w *simulated) lost(before map[string]string, taken string) {
	left := slices.Collect(maps.Values(w.files))
	for _, content := range before {
		if !slices.Contains(left, content) && content != taken && !replaced(before, content) {
			w.t.Fatalf("%q is lost", content)
		}
	}
}

func replaced(files map[string]string, content string) bool {
	for name, is := range files {
		if file, held := nodeagent.HeldFile(name); held && is == content && files[file] != "" {
			return true
		}
	}
	return false
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(proxyText), []byte("node-7"))
	f.Add([]byte(bomb), []byte("x"))
	f.Fuzz(func(t *testing.T, data, node []byte) {
		m, err := nodeagent.ReadManifest(data)
		if (err == nil) != (m != nil) {
			t.Fatalf("read %+v, %v", m, err)
		}
		if m != nil && (m.Name == "" || m.Namespace == "" || m.Grace < 0) {
			t.Fatalf("read %+v", m)
		}
		s := nodeagent.Snapshot{Now: now, Live: true, Node: aNode(upTo7000), Self: nodeagent.Self{Node: string(node)}, Folder: nodeagent.Folder{
			Known: true, Files: []nodeagent.File{{Name: "a", Manifest: m}, {Name: nodeagent.HeldName("b"), Manifest: m}},
		}}
		if d := nodeagent.Decide(s); len(d.Status.StaticPods) > 3 {
			t.Fatalf("two files make %d pods", len(d.Status.StaticPods))
		}
	})
}

func FuzzJournal(f *testing.F) {
	f.Add(nodeagent.Journal{Manifests: []nodeagent.Entry{entry(v1alpha1.StaticPodHeld, 0)}}.Text())
	f.Add([]byte(`{"version":1,"manifests":[{"file":"../x","held":".../x.ebbtide-held","state":"Held","at":"2026-03-01T00:00:00Z"}]}`))
	f.Add([]byte(`{"version":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		j, err := nodeagent.ParseJournal(data)
		if err != nil {
			return
		}
		for _, e := range j.Manifests {
			if strings.ContainsAny(e.File, "/\x00") || !nodeagent.Visible(e.File) || e.Held != nodeagent.HeldName(e.File) {
				t.Fatalf("an entry is about %q, put aside as %q", e.File, e.Held)
			}
		}
		s := nodeagent.Snapshot{Now: now, Live: true, Node: aNode(""), Self: nodeagent.Self{Node: "n"}, Journal: j, Folder: nodeagent.Folder{Known: true}}
		if d := nodeagent.Decide(s); len(d.Moves) > 0 {
			t.Fatalf("a journal alone moves %v", moves(d))
		}
		if again, err := nodeagent.ParseJournal(j.Text()); err != nil || len(again.Manifests) != len(j.Manifests) {
			t.Fatalf("what was read is written as %s, %v", j.Text(), err)
		}
	})
}
