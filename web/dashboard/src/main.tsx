import '@patternfly/react-core/dist/styles/base.css';
import './dashboard.css';

import { QueryClientProvider } from '@tanstack/react-query';
import { lazy, StrictMode } from 'react';
import { createRoot } from 'react-dom/client';

import { queries } from './api/queries';
import { SessionProvider } from './session/SessionProvider';
import { askAgain } from './shell/stylesheets';
import { ThemeProvider } from './shell/theme';
import { LanguageProvider } from './text';

// The sign-in needs none of the pages.
const Pages = lazy(() => import('./shell/Pages').then(({ Pages }) => ({ default: Pages })));

window.addEventListener('vite:preloadError', askAgain);

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <ThemeProvider>
      <LanguageProvider>
        <QueryClientProvider client={queries}>
          <SessionProvider>
            <Pages />
          </SessionProvider>
        </QueryClientProvider>
      </LanguageProvider>
    </ThemeProvider>
  </StrictMode>,
);
