import { LogViewer } from '@patternfly/react-log-viewer';
import { useEffect, useState, type ReactNode, type RefObject } from 'react';

import { useTheme } from '../shell/theme';

interface Props {
  /** The results of plainLine. */
  lines: string[];
  label: string;
  wraps: boolean;
  /** Shown below a log that was scrolled up, to follow on. */
  toEnd: (follow: () => void) => ReactNode;
}

/** The used part of the viewer's list. */
interface List {
  scrollToItem: (index: number, align: 'end') => void;
}

/** A reference that calls back when the viewer makes its list, which it does anew whenever its size changes. */
const telling = (told: (list: List | null) => void): RefObject<List | null> => {
  let list: List | null = null;
  return {
    get current() {
      return list;
    },
    set current(next: List | null) {
      list = next;
      told(next);
    },
  };
};

/**
 * The lines of a log in PatternFly's viewer, which stays at the end while lines come, until the user scrolls up. The
 * viewer puts lines of more than fastRowHeightEstimationLimit characters into the page as HTML to measure them, and
 * its search results, too: so no line is ever that long, and its search is not used.
 */
export default function LogText({ lines, label, wraps, toEnd }: Props) {
  const { theme } = useTheme();
  const [follows, setFollows] = useState(true);
  const [list, setList] = useState<List | null>(null);
  const [ref] = useState(() => telling(setList));
  useEffect(() => {
    if (follows) list?.scrollToItem(lines.length - 1, 'end');
  }, [list, lines, follows]);
  const dark = theme === 'dark' || (theme === 'system' && matchMedia('(prefers-color-scheme: dark)').matches);
  return (
    <div role="log" aria-live="off" aria-label={label} tabIndex={0}>
      <LogViewer
        innerRef={ref}
        data={lines}
        height="32rem"
        hasLineNumbers={false}
        isTextWrapped={wraps}
        theme={dark ? 'dark' : 'light'}
        fastRowHeightEstimationLimit={Number.MAX_SAFE_INTEGER}
        onScroll={({ scrollOffsetToBottom, scrollUpdateWasRequested }) => {
          if (!scrollUpdateWasRequested) setFollows(scrollOffsetToBottom < 40);
        }}
        footer={follows ? undefined : toEnd(() => setFollows(true))}
      />
    </div>
  );
}
