import type { ComponentChildren } from 'preact';
import { useId, useRef } from 'preact/hooks';

interface MenuProps {
  /** What the button shows. */
  readonly button: ComponentChildren;
  /** What the button means, if it shows an icon only. */
  readonly label?: string;
  readonly buttonClass?: string;
  readonly children: ComponentChildren;
}

const GAP_PX = 4;

/** A button with a panel under it, which closes with Escape and with a click elsewhere. */
export function Menu({ button, label, buttonClass = 'button', children }: MenuProps) {
  const id = useId();
  const opener = useRef<HTMLButtonElement>(null);
  const panel = useRef<HTMLDivElement>(null);
  const place = ({ newState }: { readonly newState: string }) => {
    if (newState === 'open') placeBelow(opener.current!, panel.current!);
  };
  const closeAfterChoice = ({ target }: Event) => {
    if (target instanceof Element && target.closest('.menu-item')) panel.current!.hidePopover();
  };
  return (
    <>
      <button ref={opener} type="button" class={buttonClass} aria-label={label} popovertarget={id}>
        {button}
      </button>
      {/* biome-ignore lint/a11y/noStaticElementInteractions lint/a11y/useKeyWithClickEvents: the buttons in it are what is used, with keys, too */}
      <div ref={panel} id={id} class="menu" popover="auto" onToggle={place} onClick={closeAfterChoice}>
        {children}
      </div>
    </>
  );
}

/** Panels lie above everything, so nothing but their own coordinates says where. */
function placeBelow(opener: HTMLElement, panel: HTMLElement): void {
  const at = opener.getBoundingClientRect();
  const width = panel.offsetWidth;
  const height = panel.offsetHeight;
  const left = Math.min(Math.max(GAP_PX, at.right - width), innerWidth - width - GAP_PX);
  const isRoomBelow = at.bottom + GAP_PX + height <= innerHeight;
  const top = isRoomBelow ? at.bottom + GAP_PX : Math.max(GAP_PX, at.top - GAP_PX - height);
  panel.style.left = `${Math.max(GAP_PX, left)}px`;
  panel.style.top = `${top}px`;
}
