package muranopl

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/burano/burano/internal/wait"
)

// turn is the right to run code in MuranoPL: one strand of an interpreter has it at a time, as one of Murano's green threads runs at a time. It is
// released only where code waits (a native method, sleep(), another call's lock, the strands of Parallel), so the code between two such places is never
// interleaved: $x: $x + 1 loses no update. Requests are served in order.
type turn struct {
	mutex sync.Mutex
	taken bool
	queue []chan struct{} // closed one after the other, the turn being handed over with each
}

// ask returns a channel that is closed when the turn is the caller's.
func (t *turn) ask() <-chan struct{} {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	mine := make(chan struct{})
	if t.taken {
		t.queue = append(t.queue, mine)
		return mine
	}
	t.taken = true
	close(mine)
	return mine
}

func (t *turn) take() {
	t.mutex.Lock()
	if !t.taken {
		t.taken = true
		t.mutex.Unlock()
		return
	}
	mine := make(chan struct{})
	t.queue = append(t.queue, mine)
	t.mutex.Unlock()
	<-mine
}

func (t *turn) give() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if len(t.queue) == 0 {
		t.taken = false
		return
	}
	next := t.queue[0]
	t.queue = slices.Delete(t.queue, 0, 1)
	close(next)
}

// waiting runs do while other strands may run. Code that is called with the context of do waits for its turn first.
func (i *Interpreter) waiting(ctx context.Context, do func(context.Context)) {
	p := runningOf(ctx)
	if !p.runs(i) {
		do(ctx)
		return
	}
	i.turn.give()
	defer i.turn.take()
	do(&running{ctx, i, p.strand, false})
}

// waiting runs do while other strands of the context's interpreter may run.
func waiting(ctx context.Context, do func(context.Context)) {
	if i := interpreterOf(ctx); i != nil {
		i.waiting(ctx, do)
		return
	}
	do(ctx)
}

// pause waits for so long while other strands of the context's interpreter run. No time at all is until all have run that ask for their turn
// by now, in their order, as in Murano.
func pause(ctx context.Context, span time.Duration) (err error) {
	i := interpreterOf(ctx)
	if span > 0 || !runningOf(ctx).runs(i) {
		waiting(ctx, func(ctx context.Context) { err = wait.Pause(ctx, span) })
		return err
	}
	mine := i.turn.ask()
	i.turn.give()
	<-mine
	return context.Cause(ctx)
}

// runs reports whether code of the interpreter runs with the context, and has the turn.
func (p *running) runs(i *Interpreter) bool { return p != nil && p.hasTurn && p.interpreter == i }
