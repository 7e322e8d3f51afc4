package maintenance

// Decide is the whole pass.
func Decide(snapshot Snapshot) Decision {
	p := open(snapshot)
	p.classify()
	p.advance()
	p.aim()
	p.suppress()
	p.count()
	p.messages()
	p.settle()
	return Decision{
		Maintenances: p.maintenanceDecisions(),
		Nodes:        p.nodeDecisions(),
		Blocked:      p.blockedPods(),
		RequeueAfter: p.requeueAfter(),
	}
}
