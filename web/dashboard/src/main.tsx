import '@patternfly/react-core/dist/styles/base.css';
import './dashboard.css';

import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';

import { queries } from './api/queries';
import { router } from './router';
import { SessionProvider } from './session/SessionProvider';
import { ThemeProvider } from './shell/theme';
import { LanguageProvider } from './text';

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <ThemeProvider>
      <LanguageProvider>
        <QueryClientProvider client={queries}>
          <SessionProvider>
            <RouterProvider router={router} />
          </SessionProvider>
        </QueryClientProvider>
      </LanguageProvider>
    </ThemeProvider>
  </StrictMode>,
);
