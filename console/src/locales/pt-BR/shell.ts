import type { shell as en } from '../en/shell';

export const shell: typeof en = {
  skip: 'Ir para o conteúdo',
  menu: 'Abrir a navegação',
  navigation: 'Navegação principal',
  language: 'Idioma',
  scheme: { label: 'Aparência', light: 'Clara', dark: 'Escura', auto: 'Como o sistema' },
  live: { on: 'Ao vivo', off: 'Pausado', pause: 'Parar de atualizar sozinho', resume: 'Voltar a atualizar sozinho' },
  me: { label: 'Conta', signedInAs: 'Conectado como', roles: 'Papéis', noRoles: 'Nenhum papel', signOut: 'Sair' },
  readOnly: 'Somente leitura',
  readOnlyWhy: 'Este servidor apenas mostra: nada pode ser alterado aqui.',
  away: {
    title: 'O servidor não responde.',
    again: (seconds: number) => `O que você vê pode estar desatualizado. Nova tentativa em ${seconds} s.`,
    now: 'Tentar agora',
  },
  broken: {
    title: 'Esta página falhou',
    what: 'A falha está no console, não nos seus dados. Nada foi alterado por ela.',
    reload: 'Carregar a página de novo',
  },
  notFound: {
    title: 'Esta página não existe',
    what: 'O endereço pode ser antigo ou estar incompleto.',
    back: 'Ir para a visão geral',
  },
  toast: { close: 'Dispensar' },
};
