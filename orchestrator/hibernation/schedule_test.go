package hibernation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/hibernation"
	"github.com/burano/burano/orchestrator/store"
)

func parsed(t require.TestingT, zone string, sleep, wake []string) hibernation.Times {
	times, err := hibernation.Parse(hibernation.Schedule{Zone: zone, Sleep: sleep, Wake: wake})
	require.NoError(t, err)
	return times
}

func at(t require.TestingT, zone, clock string) time.Time {
	place, err := time.LoadLocation(zone)
	require.NoError(t, err)
	found, err := time.ParseInLocation("2006-01-02 15:04", clock, place)
	require.NoError(t, err)
	return found
}

func TestASchedulesTimesAreThoseOfItsZone(t *testing.T) {
	const zone, form = "Europe/Berlin", "Mon 2006-01-02 15:04 -0700"
	times := parsed(t, zone, []string{"0 20 * * 1-5"}, []string{" 0  7 * *  mon-FRI "})
	friday := at(t, zone, "2026-11-27 20:00")
	require.Equal(t, hibernation.Transition{At: friday}, times.Last(friday), "a time counts from its instant on")
	require.True(t, times.Last(friday.Add(-time.Nanosecond)).Wakes)
	require.Equal(t, hibernation.Transition{At: at(t, zone, "2026-11-30 07:00"), Wakes: true}, times.NextOf(friday))
	next, found := times.Next(friday, false)
	require.True(t, found)
	require.Equal(t, "Mon 2026-11-30 20:00 +0100", next.Format(form))
	only := parsed(t, zone, []string{"15 23 * * 0,7"}, nil)
	require.Equal(t, "Sun 2026-11-22 23:15 +0100", only.Last(friday).At.Format(form))
	_, found = only.Next(friday, true)
	require.False(t, found, "it never wakes by itself")
	over := parsed(t, zone, []string{"0 0 * * sat-sun"}, nil)
	require.Equal(t, "Sat 2026-11-28 00:00 +0100", over.NextOf(friday).At.Format(form))
	require.Equal(t, "Sun 2026-11-29 00:00 +0100", over.NextOf(over.NextOf(friday).At).At.Format(form))
	require.Equal(t, "Sat 2026-11-28 03:00 +0100", parsed(t, zone, []string{"0 * * * *"}, nil).Last(at(t, zone, "2026-11-28 03:59")).At.Format(form))
}

func TestTimesThatClocksSkipOrShowTwiceHappenOnce(t *testing.T) {
	const zone, form = "Europe/Berlin", "2006-01-02 15:04 -0700"
	times := parsed(t, zone, []string{"30 2 * * *"}, []string{"0 5 * * *"})
	require.Equal(t, "2026-03-29 03:00 +0200", times.Last(at(t, zone, "2026-03-29 04:00")).At.Format(form), "02:30 is skipped: it is when clocks skip it")
	require.Equal(t, "2026-10-25 02:30 +0200", times.Last(at(t, zone, "2026-10-25 04:00")).At.Format(form), "02:30 is shown twice: it is the first one")
	second := at(t, "UTC", "2026-10-25 01:30")
	require.Equal(t, "02:30 +0100", second.In(at(t, zone, "2026-10-25 04:00").Location()).Format("15:04 -0700"))
	require.Equal(t, "2026-10-25 05:00 +0100", times.NextOf(second).At.Format(form), "the second one is none")

	equal := parsed(t, zone, []string{"0 2 * * 0"}, []string{"0 3 * * 0"})
	last := equal.Last(at(t, zone, "2026-03-29 03:00"))
	require.True(t, last.Wakes, "two times fall together where clocks skip an hour: the later one counts")
	require.Equal(t, "2026-03-29 03:00 +0200", last.At.Format(form))
	gone := parsed(t, "Pacific/Apia", []string{"0 20 * * 5"}, []string{"0 7 * * 1"})
	require.Equal(t, "2011-12-31 00:00 +1400", gone.Last(at(t, "Pacific/Apia", "2012-01-01 12:00")).At.Format(form), "the Friday was skipped")
}

func TestASchedulesMistakesAreNamed(t *testing.T) {
	many := slices.Repeat([]string{"0 20 * * 1"}, 9)
	for name, one := range map[string]struct {
		schedule hibernation.Schedule
		want     string
	}{
		"nothing":         {hibernation.Schedule{Zone: "UTC"}, "no times"},
		"no zone":         {hibernation.Schedule{Sleep: []string{"0 20 * * *"}}, `"" is no time zone`},
		"of the machine":  {hibernation.Schedule{Zone: "Local", Sleep: []string{"0 20 * * *"}}, `"Local" is no time zone`},
		"a file":          {hibernation.Schedule{Zone: "../../etc/passwd", Sleep: []string{"0 20 * * *"}}, "is no time zone"},
		"a long zone":     {hibernation.Schedule{Zone: strings.Repeat("a", 1<<20), Sleep: []string{"0 20 * * *"}}, "is no time zone"},
		"too many":        {hibernation.Schedule{Zone: "UTC", Sleep: many}, "has 9 expressions, and may have 8"},
		"too long":        {hibernation.Schedule{Zone: "UTC", Wake: []string{strings.Repeat("0", 1<<20)}}, "longer than 100"},
		"too few fields":  {hibernation.Schedule{Zone: "UTC", Wake: []string{"7:00"}}, `wake "7:00": it has 1 fields`},
		"minutes":         {hibernation.Schedule{Zone: "UTC", Wake: []string{"*/5 7 * * *"}}, `minute "*/5" is no number from 0 to 59`},
		"negative":        {hibernation.Schedule{Zone: "UTC", Wake: []string{"-1 7 * * *"}}, `minute "-1" is no number`},
		"hours":           {hibernation.Schedule{Zone: "UTC", Wake: []string{"0 24 * * *"}}, `hours "24": "24" is no hour from 0 to 23`},
		"reversed":        {hibernation.Schedule{Zone: "UTC", Wake: []string{"0 5-3 * * *"}}, `the range "5-3" ends before it begins`},
		"steps":           {hibernation.Schedule{Zone: "UTC", Wake: []string{"0 */2 * * *"}}, `"*/2" is no hour`},
		"a day of months": {hibernation.Schedule{Zone: "UTC", Wake: []string{"0 7 1 * *"}}, `day and month are "1" and "*", and must be *`},
		"weekdays":        {hibernation.Schedule{Zone: "UTC", Wake: []string{"0 7 * * 8"}}, `"8" is no weekday`},
		"empty items":     {hibernation.Schedule{Zone: "UTC", Wake: []string{"0 7 * * 1,"}}, `"" is no weekday`},
		"together":        {hibernation.Schedule{Zone: "UTC", Sleep: []string{"0 7 * * *"}, Wake: []string{"0 7 * * 3"}}, "Wednesday 07:00 and Wednesday 07:00 are less than an hour apart"},
		"close":           {hibernation.Schedule{Zone: "UTC", Sleep: []string{"30 23 * * 6"}, Wake: []string{"0 0 * * 0"}}, "Saturday 23:30 and Sunday 00:00 are less than an hour apart"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := hibernation.Parse(one.schedule)
			require.ErrorContains(t, err, one.want)
			require.Equal(t, fault.Invalid, fault.KindOf(err))
			require.Less(t, len(err.Error()), 400)
		})
	}
}

func FuzzSchedules(f *testing.F) {
	f.Add("Europe/Berlin", "0 20 * * 1-5", "0 7 * * mon-fri")
	f.Add("UTC", "0 0-23 * * *", "30 1,2 * * sat-mon")
	f.Fuzz(func(t *testing.T, zone, sleep, wake string) {
		times, err := hibernation.Parse(hibernation.Schedule{Zone: zone, Sleep: []string{sleep}, Wake: []string{wake}})
		if err != nil {
			require.Equal(t, fault.Invalid, fault.KindOf(err))
			return
		}
		now := time.Date(2026, 3, 29, 0, 30, 0, 0, time.UTC)
		require.False(t, times.Last(now).At.After(now))
		require.True(t, times.NextOf(now).At.After(now))
		text, err := times.Text()
		require.NoError(t, err)
		again, found, err := hibernation.Stored(store.Hibernation{Schedule: text})
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, times.Last(now), again.Last(now))
	})
}

// weekly is one random expression with its values.
type weekly struct {
	minute      int
	hours, days []int
	wakes       bool
}

func (w weekly) String() string {
	list := func(numbers []int) string {
		return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(numbers)), ","), "[]")
	}
	return fmt.Sprintf("%d %s * * %s", w.minute, list(w.hours), list(w.days))
}

func (w weekly) has(clock time.Time) bool {
	return clock.Minute() == w.minute && slices.Contains(w.hours, clock.Hour()) && slices.Contains(w.days, int(clock.Weekday()))
}

// scan finds the transitions between two times minute by minute: a minute of the zone's clock counts when it is reached first, or skipped.
func scan(zone *time.Location, from, to time.Time, list []weekly) (found []hibernation.Transition) {
	shown := func(now time.Time) time.Time {
		_, offset := now.In(zone).Zone()
		return now.UTC().Add(time.Duration(offset) * time.Second)
	}
	for now, reached := from, shown(from.Add(-time.Minute)); now.Before(to); now = now.Add(time.Minute) {
		for ; reached.Before(shown(now)); reached = reached.Add(time.Minute) {
			for _, one := range list {
				if one.has(reached.Add(time.Minute)) {
					found = append(found, hibernation.Transition{At: now, Wakes: one.wakes})
				}
			}
		}
	}
	return found
}

func TestTheLastTimeCountsUnlessAUserHasActedSince(t *testing.T) {
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "America/St_Johns", "Asia/Kolkata", "Pacific/Auckland", "Australia/Lord_Howe", "Africa/Casablanca", "Pacific/Apia"}
	rapid.Check(t, func(r *rapid.T) {
		name := rapid.SampledFrom(zones).Draw(r, "zone")
		zone, err := time.LoadLocation(name)
		require.NoError(r, err)
		var list []weekly
		schedule := hibernation.Schedule{Zone: name}
		for range rapid.IntRange(1, 4).Draw(r, "expressions") {
			one := weekly{minute: rapid.IntRange(0, 59).Draw(r, "minute"), hours: rapid.SliceOfNDistinct(rapid.IntRange(0, 23), 1, 3, rapid.ID[int]).Draw(r, "hours"),
				days: rapid.SliceOfNDistinct(rapid.IntRange(0, 6), 1, 7, rapid.ID[int]).Draw(r, "days"), wakes: rapid.Bool().Draw(r, "wakes")}
			to := &schedule.Sleep
			if one.wakes {
				to = &schedule.Wake
			}
			*to, list = append(*to, one.String()), append(list, one)
		}
		times, err := hibernation.Parse(schedule)
		if err != nil {
			require.ErrorContains(r, err, "less than an hour apart")
			r.Skip("times too close")
		}
		// The clocks change on most of these days somewhere.
		begin := time.Date(rapid.SampledFrom([]int{2011, 2026, 2027}).Draw(r, "year"), rapid.SampledFrom([]time.Month{2, 3, 4, 9, 10, 12}).Draw(r, "month"), rapid.IntRange(1, 31).Draw(r, "day"), 0, 0, 0, 0, time.UTC)
		end := begin.AddDate(0, 0, 15)
		actual := scan(zone, begin.AddDate(0, 0, -9), end.AddDate(0, 0, 9), list)
		state, settled, made := store.Awake, begin, time.Time{}
		for now := begin; now.Before(end); now = now.Add(time.Duration(rapid.SampledFrom([]int{1, 40, 400, 5000}).Draw(r, "pause")) * time.Minute) {
			after := slices.IndexFunc(actual, func(one hibernation.Transition) bool { return one.At.After(now) })
			last, due := times.Due(now, state, settled)
			require.True(r, actual[after-1].At.Equal(last.At) && actual[after-1].Wakes == last.Wakes, "at %s: %v, not %v", now, actual[after-1], last)
			require.True(r, actual[after].At.Equal(times.NextOf(now).At), "after %s", now)
			if due == hibernation.IsDue || due == hibernation.Late {
				require.True(r, last.At.After(settled), "a user has acted since")
				require.False(r, last.At.Equal(made), "it was made before")
				require.False(r, !last.Wakes && now.Sub(last.At) > hibernation.LateSleep)
				require.Equal(r, due == hibernation.Late, now.Sub(last.At) > time.Hour)
			} else if last.At.After(settled) && now.Sub(last.At) <= hibernation.LateSleep {
				require.Equal(r, last.Wakes, state == store.Awake, "it is as it should be")
			}
			switch rapid.SampledFrom([]string{"act", "act", "act", "fail", "user"}).Draw(r, "then") {
			case "user":
				state, settled = rapid.SampledFrom([]store.HibernationState{store.Awake, store.Asleep, store.Waking, store.Hibernating}).Draw(r, "state"), now
			case "act":
				if due == hibernation.IsDue || due == hibernation.Late {
					if state, made = store.Asleep, last.At; last.Wakes {
						state = store.Awake
					}
				}
			}
		}
	})
}

func TestATaskThatBeginsLateStopsNothing(t *testing.T) {
	times, err := hibernation.Parse(hibernation.Schedule{Zone: "UTC", Sleep: []string{"0 20 * * 1-5"}, Wake: []string{"0 7 * * 1-5"}})
	require.NoError(t, err)
	friday := time.Date(2026, 11, 27, 20, 0, 0, 0, time.UTC)
	earlier := friday.Add(-24 * time.Hour)
	for _, one := range []struct {
		title     string
		now       time.Time
		state     store.HibernationState
		settled   time.Time
		overtaken bool
	}{
		{"in time", friday.Add(time.Minute), store.Awake, earlier, false},
		{"some hours late", friday.Add(5 * time.Hour), store.Awake, earlier, false},
		{"on Monday before the time to wake", friday.Add(58 * time.Hour), store.Awake, earlier, true},
		{"on Monday after the time to wake", friday.Add(61 * time.Hour), store.Awake, earlier, true},
		{"another schedule was set", friday.Add(time.Minute), store.Awake, friday.Add(time.Second), true},
		{"it goes on after some hours", friday.Add(58 * time.Hour), store.Hibernating, earlier, false},
		{"it goes on after the time to wake", friday.Add(61 * time.Hour), store.Hibernating, earlier, true},
	} {
		require.Equal(t, one.overtaken, times.Overtaken(one.now, one.state, one.settled), one.title)
	}
}
